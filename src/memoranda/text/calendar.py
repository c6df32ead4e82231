"""The words of dates: months, days and seasons, and regular expressions for them. No I/O.

The expressions are for matching without regard to case.
"""

from __future__ import annotations

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTH = f"(?:{'|'.join(f'{name[:3]}(?:{name[3:]})?' if name[3:] else name for name in MONTHS)}|sept)"
"""An English month, also its first three letters."""
MONTH_BEGINS = r"(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)"
"""The first three letters of a month, English or German."""
DAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
SEASON = r"(?:spring|summer|autumn|fall|winter)"
