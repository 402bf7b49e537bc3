"""Models by their id on the Hugging Face Hub, where ``huggingface_hub`` is installed.

Only files that ``folder`` reads are asked for. Nothing here runs unless a name is asked for that is
no folder, and never on a public server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tfm_core.data.opened_folder import CONFIG, FILES, INDEX, MAX_BYTES, WEIGHTS, Unopenable
from tfm_core.pretrained.pictures import PREPROCESSOR
from tfm_core.sentences import N_, Paragraph, Sentence, in_bytes

_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
_WEIGHTS = re.compile(r"model(-.+-of-.+)?\.safetensors")
_FILES = (CONFIG, INDEX, WEIGHTS, "model-*-of-*.safetensors", PREPROCESSOR, *FILES)


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model on the Hub at one of its revisions. n_bytes: of its weights."""

    name: str
    revision: str
    n_bytes: int

    @property
    def size_message(self) -> Sentence:
        """What there is to download."""
        return N_(
            "{name} on the Hub: {size} to download.", name=self.name, size=in_bytes(self.n_bytes)
        )

    def folder(self) -> Path:
        """Return its folder, downloaded where it is not in the cache. Raises Unopenable."""
        with _errors_as_unopenable(self.name):
            from huggingface_hub import snapshot_download

            return Path(
                snapshot_download(self.name, revision=self.revision, allow_patterns=list(_FILES))
            )


def is_id(name: str) -> bool:
    """Return whether a name can be a model's on the Hub, and is nothing on this machine."""
    return _ID.fullmatch(name) is not None and ".." not in name and not Path(name).exists()


def find_model(name: str, *, is_public: bool, most: int = MAX_BYTES) -> HubModel:
    """Return a model by its id, with nothing downloaded. Raises Unopenable.

    is_public: of the server. most: bytes of its weights.
    """
    if is_public:
        raise Unopenable(Paragraph("pretrained/hub-public", name=name))
    with _errors_as_unopenable(name):
        from huggingface_hub import HfApi

        info = HfApi().model_info(name, files_metadata=True)
    weights = [file for file in info.siblings or () if _WEIGHTS.fullmatch(file.rfilename)]
    if not weights:
        raise Unopenable("{name} has no safetensors weights on the Hub.", name=name)
    size = sum(file.size or 0 for file in weights)
    if size > most:
        raise Unopenable(
            "The weights have {size}; the limit is {most}.",
            size=in_bytes(size),
            most=in_bytes(most),
        )
    return HubModel(name, str(info.sha or "main"), size)


@contextmanager
def _errors_as_unopenable(name: str) -> Iterator[None]:
    """Raise Unopenable, in a sentence, for what goes wrong with the Hub."""
    try:
        yield
    except ImportError:
        raise Unopenable(Paragraph("pretrained/no-hub", name=name)) from None
    except Exception as error:  # of its own, of requests or of httpx, by version
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if "RepositoryNotFoundError" in kinds:  # a gated one is also such an error
            raise Unopenable("The Hub has no public model {name}.", name=name) from None
        if not isinstance(error, OSError | ValueError) and "HTTPError" not in kinds:
            raise
        why = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise Unopenable(Paragraph("pretrained/hub-unreachable", name=name, why=why)) from None
