"""A visitor without a browser: requests pages over the websocket."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

PATIENCE = 30.0  # seconds without a word from the server


class Visitor:
    """One session with the app. buttons: the id of each that it has been sent, by its key."""

    def __init__(self, connection: ClientConnection) -> None:
        """Speak over an open connection."""
        self._connection = connection
        self._page, self._query, self._script = "", "", ""
        self.buttons: dict[str, str] = {}

    def visit(self, page: str, query: str = "") -> None:
        """Ask for a page by its url path, and wait until its script has ended.

        Raises TimeoutError, and RuntimeError where the script failed.
        """
        self._page, self._query = page, query
        message = BackMsg()
        message.rerun_script.page_name = page
        message.rerun_script.query_string = query
        self._send(message)

    def press(self, key: str) -> None:
        """Press a button of the page by its key, and wait until the page is drawn.

        Raises KeyError, TimeoutError, and RuntimeError where the script failed.
        """
        message = BackMsg()
        message.rerun_script.query_string = self._query
        message.rerun_script.page_script_hash = self._script
        message.rerun_script.widget_states.widgets.add(id=self.buttons[key], trigger_value=True)
        self._send(message)

    def _send(self, message: BackMsg) -> None:
        self._connection.send(message.SerializeToString())
        while not self._is_end_of_page(self._next()):
            pass

    def _next(self) -> ForwardMsg:
        """Return the next message. Raises TimeoutError."""
        data = self._connection.recv(PATIENCE, decode=False)
        message = ForwardMsg.FromString(data)
        kind = message.WhichOneof("type")
        if kind == "navigation":
            self._script = message.navigation.page_script_hash
        elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "button":
            button = message.delta.new_element.button.id
            self.buttons[button.split("-", 2)[-1]] = button
        elif kind == "page_info_changed":
            self._query = message.page_info_changed.query_string
        return message

    def _is_end_of_page(self, message: ForwardMsg) -> bool:
        """Return whether the page's script has ended. Raises RuntimeError if it failed."""
        if message.WhichOneof("type") != "script_finished":
            return False
        if message.script_finished == ForwardMsg.FINISHED_WITH_COMPILE_ERROR:
            raise RuntimeError(f"The page “{self._page}” could not be compiled.")
        return bool(message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY)


@contextmanager
def visitor(url: str, *, cookies: Mapping[str, str] | None = None) -> Iterator[Visitor]:
    """Open a session with the app at ``url`` for the length of the block."""
    address = f"ws{url.removeprefix('http')}/_stcore/stream"
    said = "; ".join(f"{name}={value}" for name, value in (cookies or {}).items())
    with connect(
        address,
        subprotocols=["streamlit"],  # type: ignore[list-item]
        max_size=None,
        additional_headers={"Cookie": said} if said else None,
    ) as connection:
        yield Visitor(connection)
