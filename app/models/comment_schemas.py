"""Comments over HTTP."""

from __future__ import annotations

from pydantic import Field

from app.http.schemas import Body, CreatedAt, ModelId, PageOf, ReasonText, Resource


class CommentRequest(Body):
    """A comment to add."""

    text: ReasonText = Field(
        description="Plain text of up to 2,000 characters. Spaces around it are removed.",
        examples=["The drop in March is the new tariff, not the model."],
    )


class Comment(Resource):
    """A comment on a model."""

    id: str = Field(description="Id of the comment.")
    model_id: ModelId
    author: str | None = Field(description="Name of the key that wrote it.")
    own: bool = Field(description="True if the caller wrote it, and may delete it.")
    text: str = Field(description="The text. It is not HTML: escape it where it is shown.")
    created_at: CreatedAt


class CommentPage(PageOf[Comment]):
    """One page of comments."""
