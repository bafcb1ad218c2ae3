"""The float32 logarithm of glibc (2.27 and later) and musl, by which XGBoost's Linux builds compute base margins.

It is not the rounded logarithm: about one value in seventy differs by a unit in the last place.
"""

import math

import numpy as np

# 1/c and log(c) of 16 intervals' points c, and the polynomial: `logf_data.c` of Arm's optimized routines.
_TABLE = [
    (float.fromhex(inverse), float.fromhex(logarithm))
    for inverse, logarithm in (
        ("0x1.661ec79f8f3bep+0", "-0x1.57bf7808caadep-2"),
        ("0x1.571ed4aaf883dp+0", "-0x1.2bef0a7c06ddbp-2"),
        ("0x1.49539f0f010bp+0", "-0x1.01eae7f513a67p-2"),
        ("0x1.3c995b0b80385p+0", "-0x1.b31d8a68224e9p-3"),
        ("0x1.30d190c8864a5p+0", "-0x1.6574f0ac07758p-3"),
        ("0x1.25e227b0b8eap+0", "-0x1.1aa2bc79c81p-3"),
        ("0x1.1bb4a4a1a343fp+0", "-0x1.a4e76ce8c0e5ep-4"),
        ("0x1.12358f08ae5bap+0", "-0x1.1973c5a611cccp-4"),
        ("0x1.0953f419900a7p+0", "-0x1.252f438e10c1ep-5"),
        ("0x1p+0", "0x0p+0"),
        ("0x1.e608cfd9a47acp-1", "0x1.aa5aa5df25984p-5"),
        ("0x1.ca4b31f026aap-1", "0x1.c5e53aa362eb4p-4"),
        ("0x1.b2036576afce6p-1", "0x1.526e57720db08p-3"),
        ("0x1.9c2d163a1aa2dp-1", "0x1.bc2860d22477p-3"),
        ("0x1.886e6037841edp-1", "0x1.1058bc8a07ee1p-2"),
        ("0x1.767dcf5534862p-1", "0x1.4043057b6ee09p-2"),
    )
]
_A0, _A1, _A2 = (
    float.fromhex(number)
    for number in ("-0x1.00ea348b88334p-2", "0x1.5575b0be00b6ap-2", "-0x1.ffffef20a4123p-2")
)
_OFFSET = 0x3F330000  # the bits of 0.699: mantissas are from there to twice it


def logarithm(x: np.float32) -> float:
    """Return the logarithm of a positive normal float32."""
    bits = int(x.view(np.uint32))
    exponent = bits - _OFFSET >> 23
    inverse, of_point = _TABLE[(bits - _OFFSET >> 19) % 16]
    mantissa = float(np.uint32(bits - (exponent << 23)).view(np.float32))
    r = mantissa * inverse - 1.0
    start = of_point + exponent * math.log(2.0)
    square = r * r
    y = _A0 * square + (_A1 * r + _A2)
    return float(np.float32(y * square + (start + r)))
