"""Views that answer in all ways that views do, and a tool that goes to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.cache import cache, caches
from django.core.cache.backends.locmem import LocMemCache
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import (
    FileResponse,
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    StreamingHttpResponse,
)
from django.urls import path
from django.utils import translation
from django.utils.cache import get_cache_key, learn_cache_key
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views import View
from django.views.decorators.cache import cache_control, cache_page, never_cache
from django.views.decorators.http import require_POST
from django.views.decorators.vary import vary_on_cookie, vary_on_headers
from rest_framework.request import Request
from rest_framework.views import APIView

from mcp_app import SyncContext, ToolOutput
from mcp_app.catalog.registry import Registry
from mcp_app.toolsets.answers import answer_output, check_answer
from mcp_app.toolsets.site_views import SiteCall, site_views

Respond = Callable[[HttpRequest], HttpResponse]

registry = Registry()


@registry.tool
def visit_page(
    ctx: SyncContext, address: str, view: str = "", method: str = "GET"
) -> ToolOutput:
    """Visit a page."""
    place, _, query = address.partition("?")
    call = SiteCall(
        path=f"/{place}",
        query=query,
        is_view=lambda match: match.url_name == (view or place),
        method=method,
        body=b"note=a+b" if method == "POST" else b"",
        content_type="application/x-www-form-urlencoded",
    )
    with site_views().visit(call, ctx) as visit:
        check_answer(visit)
        return answer_output(visit)


def answer(content: Any, status: int = 200, kind: str = "", **headers: str) -> Any:
    def view(request: HttpRequest) -> HttpResponse:
        if isinstance(content, bytes | str):
            options = {"content_type": kind or "text/plain"}
            return HttpResponse(content, status=status, headers=headers, **options)
        return JsonResponse(content, status=status, safe=False, headers=headers)

    return view


def plain(text: str) -> HttpResponse:
    return HttpResponse(text, content_type="text/plain")


def raising(error: Exception) -> Any:
    def view(request: HttpRequest) -> HttpResponse:
        password = "a secret in locals"
        raise error from ValueError(password)

    return view


def who(request: HttpRequest) -> JsonResponse:
    """What a view learns of its request."""
    names = [*request.META]
    return JsonResponse(
        {
            "user": request.user.get_username(),
            "host": request.get_host(),
            "secure": request.is_secure(),
            "path": request.get_full_path(),
            "headers": sorted(each for each in names if each.startswith("HTTP_")),
            "address": request.META["REMOTE_ADDR"],
            "note": request.POST.get("note"),
            "language": translation.get_language(),
        }
    )


def activate(request: HttpRequest) -> HttpResponse:
    translation.activate("fr")
    return plain("ok")


def remember(request: HttpRequest) -> HttpResponse:
    request.session["visits"] = request.session.get("visits", 0) + 1
    request.session.save()
    request.session.cycle_key()
    return JsonResponse(dict(request.session.items()))


def write(request: HttpRequest) -> HttpResponse:
    Group.objects.create(name=request.POST["note"])
    messages.success(request, format_html("It is <b>{}</b>.", "there"))
    return HttpResponseRedirect("/elsewhere/?q=1")


def endless(request: HttpRequest) -> StreamingHttpResponse:
    def parts() -> Iterator[bytes]:
        while True:
            yield b"x" * 100_000

    return StreamingHttpResponse(parts())


def waiting(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncIterator[bytes]:
        yield b"x"

    return StreamingHttpResponse(parts())


async def slowly(request: Any) -> HttpResponse:
    user = await request.auser()
    return plain(user.get_username())


def file(request: HttpRequest) -> FileResponse:
    return FileResponse(open(__file__, "rb"), content_type="application/zip")


class Closing(HttpResponse):
    closed_by: list[str] = []
    _resource_closers: list[Callable[[], object]]

    def __init__(self) -> None:
        super().__init__("open")
        self._resource_closers.append(lambda: self.closed_by.append("site"))


def named(request: HttpRequest) -> HttpResponse:
    name = request.user.get_username() or "nobody"
    return plain(f"{name} reads this")


def count(request: HttpRequest) -> HttpResponse:
    """Count its calls in a cache, and say whether the cache is what it was."""
    known: Any = caches[request.GET["cache"]]
    number = known.get_or_set("count", 0) + 1
    known.set("count", number)
    return plain(f"{number} {isinstance(known, LocMemCache) and 'count' in known}")


class Named(View):
    @method_decorator(cache_page(60))
    def get(self, request: HttpRequest) -> HttpResponse:
        return named(request)


class NamedRest(APIView):
    """As the documentation of Django REST framework caches."""

    authentication_classes = ()
    permission_classes = ()

    @method_decorator(cache_page(60, cache="other"))
    @method_decorator(cache_control(public=True))
    def get(self, request: Request) -> HttpResponse:
        return named(request._request)


def by_token(request: HttpRequest) -> HttpResponse:
    return plain(f"{request.headers.get('Authorization', 'nobody')} reads this")


def page(request: HttpRequest, key: str = "") -> HttpResponse:
    return plain(f"page {key}")


def swap_user(get_response: Respond) -> Respond:
    """A middleware that lets everybody be the boss."""

    def respond(request: HttpRequest) -> HttpResponse:
        request.user = User.objects.get(username="boss")
        return get_response(request)

    return respond


def second_factor(get_response: Respond) -> Respond:
    """A middleware that wants something else first."""

    return lambda request: HttpResponseRedirect("/accounts/2fa/?next=/")


def cache_by_vary(get_response: Respond) -> Respond:
    """A cache of the site's own, by what its answers say of themselves."""

    def respond(request: HttpRequest) -> HttpResponse:
        key = get_cache_key(request)
        known: HttpResponse | None = None if key is None else cache.get(key)
        if known is None:
            known = get_response(request)
            cache.set(learn_cache_key(request, known), known)
        return known

    return respond


def catch_all(get_response: Respond) -> Any:
    """A middleware that makes a page of each error."""

    respond: Any = partial(get_response)
    respond.process_exception = lambda request, error: plain("sorry")
    return respond


def handler403(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A page that says nothing by its status."""
    return plain("sorry")


VIEWS: dict[str, Any] = {
    "object": answer({"a": 1}),
    "list": answer([1, 2]),
    "text": answer("plain"),
    "nothing": answer("", 204),
    "html": answer("<p>x</p>", kind="text/html; charset=utf-8"),
    "image": answer(b"\x89PNG", kind="image/png"),
    "broken": answer("{", kind="application/json"),
    "wrong": answer({"number": ["It is taken."], "lines": [{"amount": ["No."]}]}, 400),
    "conflict": answer({"detail": "Somebody was faster."}, 409),
    "unfit": answer("no", 422),
    "unknown": raising(Http404("no order of maria")),
    "gone": answer("", 410),
    "forbidden": raising(PermissionDenied("because")),
    "stranger": answer({"detail": "Log in."}, 401),
    "bad": raising(BadRequest("secret reason")),
    "often": answer("", 429, **{"Retry-After": "20"}),
    "often_still": answer("", 429),
    "crash": raising(ZeroDivisionError("by zero")),
    "away": answer("secret body", 503),
    "post_only": require_POST(answer("done")),
    "move": lambda request: HttpResponseRedirect("/elsewhere/"),
    "login_first": lambda request: HttpResponseRedirect("/account/login/?next=/"),
    "large": answer("x" * 10 * 2**20),
    "who": who,
    "activate": activate,
    "remember": remember,
    "write": write,
    "endless": endless,
    "waiting": waiting,
    "slowly": slowly,
    "file": file,
    "closing": lambda request: Closing(),
    "named": named,
    "cached": cache_page(60)(named),
    "cached_public": cache_page(60)(cache_control(public=True)(named)),
    "cached_class": cache_page(60)(Named.as_view()),
    "cached_method": Named.as_view(),
    "cached_drf": NamedRest.as_view(),
    "count": count,
    "cached_cookie": cache_page(60)(vary_on_cookie(named)),
    "cached_token": cache_page(60)(vary_on_headers("Authorization")(by_token)),
    "fresh": never_cache(named),
}

urlpatterns = [
    *(path(name, view, name=name) for name, view in VIEWS.items()),
    path("orders/export", page, name="export"),
    path("orders/<str:key>", page, name="order"),
    path("orders/<str:key>/send", page, name="send"),
    path("account/login/", page, name="login"),
]
