"""Chats in JSON as pairs: what a user says, and what the assistant answers.

A message has a role and a content (OpenAI, Hugging Face), or from and value (ShareGPT).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tfm_core.sentences import N_, Sentence, counted

COLUMNS = ("prompt", "response")
_KEYS = ("messages", "conversations", "conversation")
_USERS = {"user", "human", "prompter"}
_ASSISTANTS = {"assistant", "gpt", "chatgpt", "bot", "model"}

Message = tuple[str, object]
"""A role and a text."""


def messages_of(value: object) -> list[Message]:
    """Return the messages of a chat, none where a value is no chat."""
    for key in _KEYS:
        messages = value.get(key) if isinstance(value, dict) else None
        if isinstance(messages, list) and all(isinstance(one, dict) for one in messages):
            roles = [one.get("role", one.get("from")) for one in messages]
            if all(isinstance(role, str) for role in roles):
                texts = [one.get("content", one.get("value")) for one in messages]
                return list(zip(roles, texts, strict=True))
    return []


def exchanges(messages: Sequence[Message], others: Counter[str]) -> Iterator[Sequence[object]]:
    """Yield each message with its answer, () for one alone; ``others`` counts other roles."""
    known = [one for one in messages if one[0] in _USERS | _ASSISTANTS]
    others.update(role for role, _text in messages if role not in _USERS | _ASSISTANTS)
    at = 0
    while at < max(1, len(known)):
        roles = [role for role, _text in known[at : at + 2]]
        if len(roles) == 2 and roles[0] in _USERS and roles[1] in _ASSISTANTS:
            yield known[at][1], known[at + 1][1]
            at += 1
        else:
            yield ()
        at += 1


def notes_on(n_chats: int, others: Counter[str]) -> Iterator[Sentence]:
    """Yield notes on how chats were read."""
    yield counted(
        "{n:,} chat read as pairs: the user's message, the assistant's answer.",
        "{n:,} chats read as pairs: the user's message, the assistant's answer.",
        n_chats,
    )
    if others:
        roles = ", ".join(f"{role[:40]} ({n:,})" for role, n in others.most_common(5))
        yield N_("Messages with other roles skipped: {roles}.", roles=roles)
