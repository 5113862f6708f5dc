"""Ed25519 signatures of module files: who wrote a file, and that nobody changed it since.

Keys are PEM files as ``openssl genpkey -algorithm ed25519`` and ``openssl pkey -pubout`` make them.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

from tvmgraph.errors import ArgumentError, LoadError, NotFoundError

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


__all__ = ["Key", "sign", "verify"]
