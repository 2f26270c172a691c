"""The public key of a program, as somebody pastes it."""

from __future__ import annotations

import re
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _
from django.views.decorators.debug import sensitive_variables

_PRIVATE: Final = _(
    "This is a private key, which must not leave the program. Paste the public one."
)
_REFUSALS: Final = (
    # The members d, k, p and q of a JWK are private.
    (r'PRIVATE KEY|"[dkpq]"\s*:', _PRIVATE),
    (r"(?s)\A.{16385}", _("This has more than 16 KiB. Paste one public key.")),
    (r"CERTIFICATE", _("This is a certificate. Paste its public key.")),
    (r'(?s)-----BEGIN.*-----BEGIN|"keys"', _("These are several keys. Paste one.")),
)
"""Patterns of texts that are refused, and why; the first match counts."""
_NO_KEY: Final = _(
    "This must be a public key, as PEM or JWK: of RSA with 2,048 to 8,192 bits, P-256"
    " or Ed25519."
)


@sensitive_variables()
def read_public_key(text: str) -> str:
    """Return the JWK of a public key in PEM or JWK, as JSON.

    Raises `ValidationError`, whose message has nothing of the text.
    """
    import jwt  # noqa: PLC0415 - an extra

    for pattern, sentence in _REFUSALS:
        if re.search(pattern, text):
            raise ValidationError(sentence)
    try:
        is_jwk = text.lstrip().startswith("{")
        key = jwt.PyJWK.from_json(text).key if is_jwk else None
        match key or load_pem_public_key(text.encode()):
            case rsa.RSAPublicKey(key_size=bits) as key if 2_048 <= bits <= 8_192:  # noqa: PLR2004
                return jwt.algorithms.RSAAlgorithm.to_jwk(key)
            case ec.EllipticCurvePublicKey(curve=ec.SECP256R1()) as key:
                return jwt.algorithms.ECAlgorithm.to_jwk(key)
            case ed25519.Ed25519PublicKey() as key:
                return jwt.algorithms.OKPAlgorithm.to_jwk(key)
    except Exception:  # noqa: S110 - frames of what reads it would show it
        pass
    raise ValidationError(_NO_KEY)
