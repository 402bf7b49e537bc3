"""What visitors send in files: how large one may be, and how its memory is given back."""

from __future__ import annotations

from collections.abc import Iterable

from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

MAX_MEGABYTES = 20
"""Of one file, as ``server.maxUploadSize`` has it."""


def let_go(files: Iterable[UploadedFile]) -> None:
    """Free the memory of files that were read, so that their session may send others."""
    context = get_script_run_ctx()
    if context and isinstance(context.uploaded_file_mgr, MemoryUploadedFileManager):
        for file in files:
            context.uploaded_file_mgr.remove_file(context.session_id, file.file_id)
