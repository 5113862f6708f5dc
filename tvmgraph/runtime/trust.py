"""Whether files may be believed: those that only this user (or root) can have written.

A cache holds machine code, which runs as this user. Checksums find accidents; they say nothing
about who wrote a file. So a folder or a file counts only if nobody else can write to it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import stat
from pathlib import Path
from typing import Any

from tvmgraph.errors import ArgumentError, LoadError, NotFoundError, warn_user

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_ROOT = 0
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_said: set[str] = set()


def why_not(path: Path) -> str | None:
    """Returns why a folder or file is not believed; None if it is, or is not there.

    Args:
        path: The folder or file.
    """
    try:
        found = os.lstat(path)
    except OSError:
        return None
    if stat.S_ISLNK(found.st_mode):
        return f"{path} is a symbolic link"
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        return f"{path} is neither a file nor a folder"  # a pipe would be waited for
    if not hasattr(os, "geteuid"):
        return None
    if found.st_uid not in (os.geteuid(), _ROOT):
        return f"{path} belongs to another user"
    if found.st_mode & _OTHERS:
        return f"others may write to {path} (chmod go-w, after a look at what is in it)"
    return None


def is_trusted(path: Path) -> bool:
    """Whether a folder or file is believed; says once in a process that one is not.

    Args:
        path: The folder or file.
    """
    reason = why_not(path)
    if reason is not None and reason not in _said:
        _said.add(reason)
        warn_user(f"not used: {reason}")
    return reason is None


def make_folder(path: Path) -> None:
    """Makes a folder that only this user may look into, whatever the umask, and those it is in.

    Args:
        path: The folder.

    Raises:
        OSError: if it cannot be made.
    """
    if not path.parent.exists():
        make_folder(path.parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, _PRIVATE_FOLDER)
        os.chmod(path, _PRIVATE_FOLDER)  # the umask may have taken the user's own rights away


def make_private(path: Path) -> None:
    """Leaves a file to this user alone.

    Args:
        path: The file.
    """
    os.chmod(path, _PRIVATE_FILE)


# ---- Ed25519 signatures of module files: who wrote a file, and that nobody changed it since ------
# Keys are PEM files as ``openssl genpkey -algorithm ed25519`` and ``openssl pkey -pubout`` make
# them.

Key = str | os.PathLike[str]


def sign(content: bytes, private_key: Key) -> str:
    """Returns the signature of bytes as text.

    Args:
        content: The bytes.
        private_key: A PEM file with an Ed25519 key.

    Raises:
        ArgumentError: if the file is no private Ed25519 key without a password.
        NotFoundError: if the package ``cryptography`` is not installed.
    """
    _, private, serialization = _library()
    key = _read(private_key, lambda pem: serialization.load_pem_private_key(pem, None))
    if not isinstance(key, private.Ed25519PrivateKey):
        raise _refused(private_key, "it is no private Ed25519 key")
    return base64.b64encode(key.sign(content)).decode()


def verify(content: bytes, signature: object, public_key: Key) -> None:
    """Checks a signature.

    Args:
        content: The bytes.
        signature: What :func:`sign` returned.
        public_key: A PEM file with an Ed25519 key.

    Raises:
        LoadError: if there is none, or it is not of this content and key.
        ArgumentError: if the file is no public Ed25519 key.
        NotFoundError: if the package ``cryptography`` is not installed.
    """
    invalid, kinds, serialization = _library()
    key = _read(public_key, serialization.load_pem_public_key)
    if not isinstance(key, kinds.Ed25519PublicKey):
        raise _refused(public_key, "it is no public Ed25519 key")
    if not isinstance(signature, str):
        raise LoadError("it is not signed", fix="export it again with sign=...")
    try:
        key.verify(base64.b64decode(signature, validate=True), content)
    except (invalid, ValueError):
        raise LoadError(
            "its signature is not of this file and key", fix="get the file again from its author"
        ) from None


def _library() -> tuple[Any, Any, Any]:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise NotFoundError(
            "signatures need the package cryptography", op="signature",
            fix="pip install tvmgraph[sign]",
        ) from None  # fmt: skip
    return InvalidSignature, ed25519, serialization


def _read(file: Key, parse: Any) -> Any:
    try:
        return parse(Path(file).read_bytes())
    except Exception as e:  # cryptography raises many kinds
        raise _refused(file, f"{type(e).__name__}: {e}") from None


def _refused(file: Key, why: str) -> ArgumentError:
    return ArgumentError(
        f"the key cannot be used: {why}", op="signature", got=os.fspath(file),
        fix="make one with openssl genpkey -algorithm ed25519, without a password",
    )  # fmt: skip
