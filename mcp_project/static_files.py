"""The middleware that serves static files, for every ASGI and WSGI server."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_only_middleware
from whitenoise.middleware import WhiteNoiseFileResponse, WhiteNoiseMiddleware

Handler = Callable[[HttpRequest], HttpResponseBase]


@sync_only_middleware
def static_files(get_response: Handler) -> Handler:
    """WhiteNoise, with whole bodies.

    A streamed file is read on the event loop, and Django warns of each under ASGI.
    """
    white_noise = WhiteNoiseMiddleware(get_response)

    def serve(request: HttpRequest) -> HttpResponseBase:
        response: HttpResponseBase = white_noise(request)
        if isinstance(response, WhiteNoiseFileResponse):
            return _whole(response)
        return response

    return serve


def _whole(streamed: WhiteNoiseFileResponse) -> HttpResponse:
    response = HttpResponse(b"".join(streamed), status=streamed.status_code)
    # The file alone: close() of the response would say that the request is over.
    if streamed.file_to_stream is not None:
        streamed.file_to_stream.close()
    response.headers = streamed.headers
    return response
