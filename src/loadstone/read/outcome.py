"""The one outcome of a request, by name.

Every planned request ends in exactly one of these; their counts are asserted to add up.
"""

from __future__ import annotations

OK = "ok"
OK_LENGTH = "ok-length"
TRUNCATED = "truncated"
RESET = "reset"
HTTP_ERROR = "http-error"
IN_BAND_ERROR = "in-band-error"
PROTOCOL_ERROR = "protocol-error"
CONNECT = "connect"
TIMEOUT_FIRST_TOKEN = "timeout-first-token"
TIMEOUT_TOTAL = "timeout-total"
CUT = "cut"
CLIENT_FAULT = "client-fault"
NOT_SENT = "not-sent"

OUTCOMES = {
    OK: "a whole answer that ended by itself",
    OK_LENGTH: "a whole answer that ended at the length asked for",
    TRUNCATED: "the answer ended cleanly on the wire without having finished",
    RESET: "the connection broke before the answer was complete",
    HTTP_ERROR: "an HTTP status outside 2xx",
    IN_BAND_ERROR: "an error inside a response of status 2xx",
    PROTOCOL_ERROR: "what came back is not what the endpoint's protocol says",
    CONNECT: "no connection was made",
    TIMEOUT_FIRST_TOKEN: "no output token within the limit",
    TIMEOUT_TOTAL: "the answer was not complete within the limit",
    CUT: "still under way when the run's grace period ended",
    CLIENT_FAULT: "the client's own fault; says nothing of the server",
    NOT_SENT: "planned and due, but never sent",
}
SUCCESSES = frozenset({OK, OK_LENGTH})
