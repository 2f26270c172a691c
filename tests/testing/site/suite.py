"""The site's suite, as `manage.py test` runs it."""

from __future__ import annotations

from django.contrib.auth.models import Permission, User
from django.db import transaction
from django.test import SimpleTestCase, TestCase, TransactionTestCase
from django.utils import timezone, translation

from mcp_app import Cancelled, Declined, Scope
from mcp_app.protocol.revisions import REVISIONS
from mcp_app.test import Client, Refused, ToolFailed, Unanswered
from tests.testing.site.parcels.mcp import SENT
from tests.testing.site.parcels.models import Parcel

SURE = {"Really send A-1?": {"sure": True}}


def allow(user: User, codename: str) -> None:
    user.user_permissions.add(Permission.objects.get(codename=codename))


class ParcelTools(TestCase):
    maria: User
    client_of_maria: Client

    @classmethod
    def setUpTestData(cls) -> None:
        cls.maria = User.objects.create_user("maria")
        allow(cls.maria, "change_parcel")
        Parcel.objects.create(number="A-1")
        cls.client_of_maria = Client(cls.maria, answers=SURE)

    def test_a_tool(self) -> None:
        result = self.client_of_maria.call("parcel_get", number="A-1")
        self.assertEqual(result.data, {"number": "A-1", "state": "open"})

    def test_a_question(self) -> None:
        for revision in ("2025-06-18", "2025-11-25", "2026-07-28"):
            with self.subTest(revision):
                client = Client(self.maria, revision=revision, answers=SURE)
                text = client.call("parcel_send", number="A-1").text
                self.assertEqual(text, "A-1 was sent.")
        self.assertEqual(Parcel.objects.get().state, "sent")

    def test_nobody_answers(self) -> None:
        with self.assertRaises(Unanswered) as caught:
            Client(self.maria).call("parcel_send", number="A-1")
        self.assertIn(
            "answers={'Really send A-1?': {'sure': True}}", str(caught.exception)
        )
        self.assertEqual(Parcel.objects.get().state, "open")

    def test_declined(self) -> None:
        client = Client(self.maria, answers={"elicitation/create": Declined()})
        self.assertEqual(
            client.call("parcel_send", number="A-1").data, "A-1 stays here."
        )

    def test_an_answer_that_looks_into_the_database(self) -> None:
        def look(params: dict[str, object]) -> dict[str, object]:
            Parcel.objects.create(number="A-2")
            return {"sure": Parcel.objects.get(number="A-1").state == "open"}

        for revision in ("2025-11-25", "2026-07-28"):
            client = Client(
                self.maria, revision=revision, answers={"Really send A-1?": look}
            )
            with transaction.atomic():
                text = client.call("parcel_send", number="A-1").text
                self.assertEqual(text, "A-1 was sent.")
                self.assertTrue(Parcel.objects.filter(number="A-2").exists())
                transaction.set_rollback(True)

    def test_rights_within_the_test(self) -> None:
        otto = User.objects.create_user("otto")
        client = Client(otto, answers=SURE)
        client.assertHidden("parcel_send")
        with self.assertRaises(Refused):
            client.call("parcel_send", number="A-1")
        allow(otto, "change_parcel")
        self.assertEqual(client.call("parcel_send", number="A-1").data, "A-1 was sent.")
        with self.assertRaisesMessage(AssertionError, "a list of this user has it"):
            client.assertHidden("parcel_send")

    def test_a_scope_and_a_rule(self) -> None:
        reading = Client(self.maria, scope=Scope(read_only=True))
        names = {each["name"] for each in reading.tools()}
        self.assertNotIn("parcel_send", names)
        self.assertEqual(
            reading.call("parcel_label", number="A-1").data, "Label of A-1"
        )
        with self.assertRaises((Refused, ToolFailed)):
            reading.call("parcel_label", number="B-1")

    def test_statements_are_counted(self) -> None:
        client = Client(self.maria)
        with self.assertNumQueries(1):
            client.call("parcel_get", number="A-1")
        with self.assertNumQueries(1):
            client.call("parcel_count")

    def test_what_happens_on_commit(self) -> None:
        SENT.clear()
        with self.captureOnCommitCallbacks(execute=True):
            Client(self.maria).call("parcel_add", number="A-3")
        self.assertEqual(SENT, ["A-3"])

    def test_a_crash_is_raised_and_rolled_back(self) -> None:
        with self.assertRaisesMessage(ValueError, "on fire"):
            Client(self.maria).call("parcel_add", number="A-4", fail=True)
        with self.assertRaisesMessage(ValueError, "on fire"):
            Client(self.maria).call("parcel_add_later", number="broken")
        self.assertEqual(Parcel.objects.count(), 1)
        result = Client(self.maria).try_call("parcel_add", number="A-4", fail=True)
        self.assertTrue(result.is_error)

    def test_a_tool_that_says_no(self) -> None:
        with self.assertRaisesMessage(ToolFailed, "There is no parcel B-1."):
            self.client_of_maria.call("parcel_get", number="B-1")

    def test_resources_prompts_and_completion(self) -> None:
        for revision in REVISIONS:
            client = Client(self.maria, revision=revision)
            self.assertEqual(client.read("parcel://A-1").data["state"], "open")
            self.assertIn("A-1 is late", client.prompt("complaint", number="A-1").text)
            self.assertEqual(client.complete("complaint", "number", "A"), ["A-1"])
            self.assertEqual(len(client.templates()), 1)
            self.assertEqual(client.prompts()[0]["name"], "complaint")

    def test_the_language_stays(self) -> None:
        with translation.override("fr"), timezone.override("Europe/Paris"):
            self.client_of_maria.call("abroad")
            self.assertEqual(translation.get_language(), "fr")
            self.assertEqual(timezone.get_current_timezone_name(), "Europe/Paris")

    def test_no_client_in_a_tool(self) -> None:
        with self.assertRaisesMessage(RuntimeError, "cannot use a test client"):
            self.client_of_maria.call("uses_a_client")

    async def test_progress_and_logs(self) -> None:
        await Parcel.objects.acreate(number="A-5")
        client = Client(self.maria, answers={"Is it back?": {"sure": True}})
        result = await client.acall("parcel_return", number="A-5")
        self.assertEqual(result.data, "A-5 is back, says maria.")
        self.assertEqual([each["progress"] for each in result.progress], [1, 2])
        self.assertEqual(result.logs[0]["data"], {"number": "A-5"})
        self.assertEqual(await Parcel.objects.filter(state="back").acount(), 1)

    async def test_async_cancelled(self) -> None:
        client = Client(self.maria, answers={"Is it back?": Cancelled()})
        result = await client.acall("parcel_return", number="A-1")
        self.assertEqual(result.data, "A-1 is cancelled.")
        with self.assertRaisesMessage(RuntimeError, "Await the method"):
            client.call("parcel_count")

    def test_a_model_and_folders(self) -> None:
        answers = {"Describe A-1.": "A box.", "roots/list": ["file:///docs"]}
        for revision in ("2025-11-25", "2026-07-28"):
            client = Client(self.maria, revision=revision, answers=answers)
            text = client.call("describe", number="A-1").text
            self.assertEqual(text, "A box. (file:///docs)")


class Committed(TransactionTestCase):
    def test_rows_that_are_committed(self) -> None:
        maria = User.objects.create_user("maria")
        self.assertEqual(Client(maria).call("parcel_add", number="C-1").data, "C-1")
        self.assertEqual(Parcel.objects.count(), 1)

    def test_after_the_tables_were_emptied(self) -> None:
        maria = User.objects.create_user("maria")
        self.assertEqual(Client(maria).call("parcel_count").data, 0)

    async def test_async(self) -> None:
        maria = await User.objects.acreate_user("maria")
        await Client(maria).acall("parcel_add_later", number="C-2")
        self.assertEqual(await Parcel.objects.acount(), 1)


class WithoutDatabase(SimpleTestCase):
    def test_it_says_what_to_use(self) -> None:
        with self.assertRaisesMessage(AssertionError, "SimpleTestCase subclasses"):
            Client().tools()
