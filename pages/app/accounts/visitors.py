"""The visitor of a session: cookie, login, which runs are listed, and what may be done with them.

The cookie is set with the page, because a websocket cannot set cookies.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.errors import StreamlitSecretNotFoundError

from pages.app import state
from pages.app.address import view
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.i18n import _
from tfm_core import settings
from tfm_core.runs import auth
from tfm_core.runs.auth import Visitor, hashed, is_token, new_token
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound
from tfm_core.sentences import StudentError

DEFAULT_PROVIDER = "default"
"""What Streamlit calls the provider that ``[auth]`` names itself."""

_TOKEN = "visitor_token"
_NOT_FOUND = "no-secrets-found"


def visitor() -> Visitor:
    if not providers():
        return Visitor(browser(), is_public=settings.read().public)
    return auth.visitor(auth.person(st.user.to_dict()), browser=browser())


@functools.cache
def providers() -> tuple[str, ...]:
    """Return the login providers: the names of ``[auth.NAME]`` in Streamlit's secrets.

    ``DEFAULT_PROVIDER`` is ``[auth]`` itself; nobody logs in without that section. Raises
    StudentError where the secrets cannot be read.
    """
    try:
        section = st.secrets.to_dict().get("auth")
    except StreamlitSecretNotFoundError as error:
        if error.error_id == _NOT_FOUND:
            return ()
        raise StudentError("Streamlit's secrets cannot be read. {why}", why=str(error)) from None
    except (OSError, ValueError) as error:
        raise StudentError("Streamlit's secrets cannot be read. {why}", why=str(error)) from None
    if section is None:
        return ()
    if not isinstance(section, Mapping):
        raise StudentError("auth in secrets.toml must be a section, [auth].")
    named = [name for name, part in section.items() if isinstance(part, Mapping)]
    named = [name for name in named if name != "client_kwargs"]
    return (*named, DEFAULT_PROVIDER) if not named or "client_id" in section else tuple(named)


def browser() -> str:
    """Return the owner id of this browser."""
    return hashed(_token())


def why_not() -> str:
    """Return why this visitor may not start or change anything, or ""."""
    return _(visitor().only_watches)


def allowed(help: str = "", *, is_off: bool = False) -> dict[str, Any]:
    """Return the arguments of a button that starts or changes something.

    For who may not, it is off and says why in place of ``help``. is_off: it is off for everybody.
    """
    reason = why_not()
    return {"disabled": is_off or bool(reason), "help": escape(reason) or help or None}


def listed(*, with_suspects: bool = False) -> list[Run]:
    """Return the runs to list: the visitor's, others' if allowed, and recorded ones.

    Each kind is newest first, except the recorded. with_suspects: include suspects, of which only
    name and state may be shown.
    """
    who, runs = visitor(), runs_access.store().list()
    trained = [run for run in runs if not run.meta.recorded]
    trained = [run for run in trained if with_suspects or not runs_access.is_hidden(run)]
    own = [run for run in trained if who.began(run)]
    others = [run for run in trained if not who.began(run)] if not settings.read().public else []
    return [*own, *others, *(run for run in runs if run.meta.recorded)]


def lists(run: Run) -> bool:
    """Return whether a run is listed."""
    return run.meta.recorded or visitor().began(run) or not settings.read().public


def available_runs() -> list[Run]:
    """Return the runs to choose from: the listed ones, and those that a link opened."""
    runs = listed()
    ids = {run.id for run in runs}
    opened = [run for run in _opened() if run.id not in ids]
    n_trained = sum(not run.meta.recorded for run in runs)
    return [*runs[:n_trained], *opened, *runs[n_trained:]]


def with_lessons() -> list[Run]:
    """Return the runs to choose from, then the recorded runs of lessons."""
    return [*available_runs(), *runs_access.store().lessons()]


def watches(run: Run) -> bool:
    """Return whether the visitor may only watch a run, because it is another's."""
    return not run.meta.recorded and not visitor().may_change(run)


def watchers_words(run: Run, *, is_active: bool) -> str:
    """Return why the visitor may only watch a run, and what to do instead."""
    who, name = visitor(), run.meta.owner_name
    if who.only_watches:
        return _(who.only_watches)
    if name is not None:
        if is_active:
            return escape(
                _("This run belongs to {name}. Start your own, or copy it when it ends.", name=name)
            )
        return escape(_("This run belongs to {name}. Train a copy to change it.", name=name))
    if is_active:
        return _("This run belongs to another visitor. Start your own, or copy it when it ends.")
    return _("This run belongs to another visitor. Train a copy.")


def badge(run: Run) -> str:
    """Return a Markdown badge of a run's owner, or ""."""
    who, name = visitor(), run.meta.owner_name
    if not who.is_public or run.meta.recorded:
        return ""
    if name is not None:
        words = _("{name} (you)", name=name) if who.began(run) else name
        colour = "blue" if who.began(run) else "gray"
        return f":{colour}-badge[:material/person: {escape(words)}]"
    if who.began(run) or providers():
        return ""
    return f":gray-badge[:material/group: {_('Another visitor’s')}]"


def _opened() -> list[Run]:
    """Return the current run and the one that the address compares it with."""
    other = view.query().get("versus", "").removeprefix("run:")
    ids = dict.fromkeys([state.current_run_id(), other])
    runs = []
    for run_id in filter(None, ids):
        with contextlib.suppress(RunNotFound):
            runs.append(runs_access.open_run(run_id))
    return runs


def _token() -> str:
    """Return the browser's token; where it takes no cookies, one that lasts as long as the session.

    Stored in the session, which outlives its connection.
    """
    if _TOKEN not in st.session_state:
        sent = st.context.cookies.get(VISITOR_COOKIE)  # not a text in a test of a page
        is_known = isinstance(sent, str) and is_token(sent)
        st.session_state[_TOKEN] = sent if is_known else new_token()
    return str(st.session_state[_TOKEN])


def login() -> None:
    """Draw the login, or the account menu."""
    who = visitor()
    if who.name is not None:
        with st.popover(escape(who.name), icon=":material/account_circle:", key="login-account"):
            st.caption(_("Only you can change your runs."))
            st.button(_("Log out"), icon=":material/logout:", key="login-out", on_click=st.logout)
        return
    names = providers()
    if len(names) == 1:
        _login_button(names[0], _("Log in"))
        return
    with st.popover(_("Log in"), icon=":material/login:", key="login-menu"):
        for name in names:
            is_default = name == DEFAULT_PROVIDER
            usual = _("Log in")
            _login_button(
                name,
                usual if is_default else _("Log in with {provider}", provider=name.capitalize()),
            )


def _login_button(name: str, label: str) -> None:
    st.button(
        escape(label),
        icon=":material/login:",
        key=f"login-{name}",
        help=_(visitor().only_watches),
        on_click=st.login,
        args=(None if name == DEFAULT_PROVIDER else name,),
    )


VISITOR_COOKIE = "tfm_visitor"

_YEAR = 365 * 24 * 3600
_CONDITIONS = (b"if-none-match", b"if-modified-since")


class Cookies:
    """Give each browser a token with its first page."""

    def __init__(self, app: ASGIApp, *, path: str = "/") -> None:
        """Wrap an app. path: where it is served, and the path of the cookies."""
        self.app, self.path = app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["method"] != "GET":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        sent = cookie_parser(headers.get("cookie", "")).get(VISITOR_COOKIE, "")
        token = sent if is_token(sent) else new_token()
        proxied = headers.get("x-forwarded-proto", "").partition(",")[0].strip().lower()
        is_secure = "https" in (scope.get("scheme"), proxied)  # TLS, perhaps to a proxy

        async def with_cookie(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                if answer.get("content-type", "").startswith("text/html"):
                    answer.append("set-cookie", self._cookie(token, is_secure))
                    answer["cache-control"] = "no-cache, private"  # a proxy's would go to others
            await send(message)

        if token != sent:  # "not modified" is no answer that a cookie could go with
            kept = [pair for pair in scope["headers"] if pair[0] not in _CONDITIONS]
            scope = {**scope, "headers": kept}
        await self.app(scope, receive, with_cookie)

    def _cookie(self, token: str, is_secure: bool) -> str:
        """Return a Set-Cookie value."""
        cookie: SimpleCookie = SimpleCookie({VISITOR_COOKIE: token})
        morsel = cookie[VISITOR_COOKIE]
        morsel["path"], morsel["samesite"], morsel["httponly"] = self.path, "Lax", True
        morsel["max-age"] = _YEAR
        if is_secure:
            morsel["secure"] = True
        return morsel.OutputString()
