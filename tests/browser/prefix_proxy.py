"""A reverse proxy that serves the app below a prefix and takes it away, as notebook servers do."""

import contextlib
import socket
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def behind(prefix: str, port: int) -> Iterator[str]:
    """Yield the address of a proxy on this machine: ``prefix`` (with slashes) goes to ``port``.

    Every connection carries one request or one web socket.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_accept, args=(listener, prefix, port), daemon=True).start()
        yield f"http://localhost:{listener.getsockname()[1]}{prefix.rstrip('/')}"


def _accept(listener: socket.socket, prefix: str, port: int) -> None:
    with contextlib.suppress(OSError):  # the listener is closed at the end
        while True:
            client, _address = listener.accept()
            threading.Thread(target=_serve, args=(client, prefix, port), daemon=True).start()


def _serve(client: socket.socket, prefix: str, port: int) -> None:
    with client, contextlib.suppress(OSError):
        head, rest = _head(client)
        method, path, version = head[0].split(" ")
        if not path.startswith(prefix):
            client.sendall(
                b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        lines = [f"{method} /{path.removeprefix(prefix)} {version}", *head[1:]]
        if not any(line.lower().startswith("upgrade:") for line in lines):
            lines = [line for line in lines if not line.lower().startswith("connection:")]
            lines.append("Connection: close")
        with socket.create_connection(("127.0.0.1", port)) as app:
            app.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + rest)
            back = threading.Thread(target=_pump, args=(app, client), daemon=True)
            back.start()
            _pump(client, app)
            back.join()


def _head(client: socket.socket) -> tuple[list[str], bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        part = client.recv(65536)
        if not part:
            raise OSError("the browser sent no whole request")
        received += part
    head, _blank, rest = received.partition(b"\r\n\r\n")
    return head.decode("latin-1").split("\r\n"), rest


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
