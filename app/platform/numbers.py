"""Numbers that are given out one after the other, and never twice, whatever was deleted since."""

from __future__ import annotations

from sqlalchemy.orm import InstrumentedAttribute, Session

from app.platform.upsert import upsert_into


def next_number(
    session: Session, counter: InstrumentedAttribute[int], *, first: int = 1, **key: str
) -> int:
    """Give out the next number of the counter's row that has this key; without such a row it is `first`.

    Transactions that ask at once take their turns on that row.
    """
    statement = (
        upsert_into(session, counter.class_)
        .values({counter.key: first} | key)
        .on_conflict_do_update(index_elements=list(key), set_={counter.key: counter + 1})
        .returning(counter)
    )
    number: int = session.scalars(statement, execution_options={"populate_existing": True}).one()
    return number
