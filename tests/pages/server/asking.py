"""Ask a part of the server for an address, without a network."""

import asyncio

Answer = tuple[int, dict[str, str], bytes]


def answer(app, path: str, method="GET", client=None, **asked: str) -> Answer:
    """Return status, headers and body. asked: headers of the request, with _ for each -."""
    messages: list[dict] = []

    async def receive() -> None:
        await asyncio.Event().wait()  # the client stays connected

    async def send(message) -> None:
        messages.append(dict(message))

    headers = [(name.replace("_", "-").encode(), said.encode()) for name, said in asked.items()]
    path, _mark, query = path.partition("?")
    scope = {"type": "http", "method": method, "path": path, "client": client, "headers": headers}
    asyncio.run(app(scope | {"root_path": "", "query_string": query.encode()}, receive, send))
    said = {name.decode(): words.decode() for name, words in messages[0]["headers"]}
    return messages[0]["status"], said, b"".join(one.get("body", b"") for one in messages[1:])
