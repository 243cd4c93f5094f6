"""One step's conversation with a model: ask, read, and ask again where that failed."""

import json
from collections.abc import Callable
from typing import Any

from ._calls import Call, CallError, Reply
from ._prompts import Prompt
from ._reading import parse_object
from ._session import Session

_MOST_ASKS = 3
_SHOWN_BACK = 4000  # characters of a reply that could not be read


class UnreadableError(CallError):
    """A model's replies could not be read, however often it was asked."""

    def __init__(self, message, data=None):
        super().__init__(message)
        self.data = data


class Chat:
    """A session together with the model that is asked in it."""

    def __init__(self, session: Session, model: str):
        self.session, self.model = session, model

    def of(self, model: str | None) -> "Chat":
        """The same session with another model; None is this one."""
        return self if model is None else Chat(self.session, model)

    async def ask(self, prompt: Prompt, content: str, **options: Any) -> Reply:
        """The reply to a text."""
        messages = (("system", prompt.text), ("user", content))
        call = Call(self.model, messages, prompt=prompt.name, **options)
        return await self.session.ask(call)

    async def ask_object(
        self,
        prompt: Prompt,
        payload: dict[str, Any],
        schema: str,
        read: Callable[[dict[str, Any]], Any],
        **options: Any,
    ) -> Any:
        """What ``read`` makes of the object in the reply.

        ``read`` raises ValueError where it can do nothing with the object. The model is
        then told so and asked again; UnreadableError after the last time.
        """
        key = next(iter(json.loads(schema)["properties"]))
        content = json.dumps(payload, ensure_ascii=False)
        messages = [("system", prompt.text), ("user", content)]
        for _ in range(_MOST_ASKS):
            data = None
            call = Call(
                self.model, tuple(messages), schema, prompt=prompt.name, **options
            )
            reply = await self.session.ask(call)
            try:
                data = parse_object(reply.text, key)
                return read(data)
            except ValueError as error:
                problem = str(error)
            if reply.finish_reason == "length":
                problem += "; it was cut off, so be brief"
            again = f"This reply cannot be used: {problem}. Reply with the JSON only."
            messages = [*messages[:2], ("assistant", reply.text[:_SHOWN_BACK])]
            messages.append(("user", again))
        raise UnreadableError(
            f"{prompt.name}: the reply of {self.model!r} cannot be used: {problem}",
            data,
        )
