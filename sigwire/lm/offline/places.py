"""A pocket gazetteer: big cities and where they lie, countries, and units of measure with what they measure. Data only."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["CITIES", "COLORS", "COUNTRIES", "CURRENCIES", "LANGUAGES", "MEASURES", "UNITS"]


def _table(text: str) -> dict[str, str]:
    return {
        name.strip().lower(): group.partition(":")[0].strip()
        for group in text.split("|")
        for name in group.partition(":")[2].split(",")
    }


# City -> state, or country outside the United States: "Chicago" can be written out as "Chicago, IL" where that is asked for.
CITIES: Mapping[str, str] = _table(
    """
NY: New York, New York City, NYC, Buffalo, Rochester | CA: Los Angeles, San Francisco, San Diego, San Jose,
Sacramento, Oakland, Fresno, Berkeley, Long Beach, Santa Rosa, Anaheim, Santa Barbara, Monterey, Palo Alto, Livermore,
Walnut Creek, Los Gatos, San Mateo, Cupertino, Sunnyvale, Mountain View, Santa Clara, Fremont, Hayward, Concord,
Vacaville, Napa, Sausalito, Petaluma, San Rafael, Novato, Santa Cruz, Pleasanton, Antioch, Union City, San Ramon,
Larkspur, Saratoga, Healdsburg, Campbell, Emeryville, Menlo Park, Burlingame, Richmond, Vallejo, Daly City, Redwood
City, San Leandro, Alameda, Lafayette | IL: Chicago | TX: Houston, Dallas, Austin, San Antonio, Fort Worth, El Paso |
AZ: Phoenix, Tucson | PA: Philadelphia, Pittsburgh | FL: Miami, Orlando, Tampa, Jacksonville | OH: Columbus,
Cleveland, Cincinnati | NC: Charlotte, Raleigh | IN: Indianapolis | WA: Seattle, Spokane | CO: Denver, Boulder | MA:
Boston, Cambridge | TN: Nashville, Memphis | MI: Detroit | OR: Portland | NV: Las Vegas, Reno | MD: Baltimore | WI:
Milwaukee | NM: Albuquerque | MO: Kansas City, St. Louis | GA: Atlanta | MN: Minneapolis | LA: New Orleans | HI:
Honolulu | AK: Anchorage | UT: Salt Lake City | DC: Washington | UK: London, Manchester, Edinburgh, Birmingham,
Glasgow, Liverpool, Oxford | France: Paris, Lyon, Marseille, Nice | Germany: Berlin, Munich, Hamburg, Frankfurt,
Cologne | Italy: Rome, Milan, Venice, Naples, Florence | Spain: Madrid, Barcelona | Japan: Tokyo, Osaka, Kyoto |
China: Beijing, Shanghai, Shenzhen, Guangzhou | India: Mumbai, Delhi, New Delhi, Bangalore, Noida, Chennai, Kolkata,
Pune, Gurgaon | Australia: Sydney, Melbourne, Brisbane, Perth | Canada: Toronto, Vancouver, Montreal, Ottawa | Russia:
Moscow | Brazil: Rio de Janeiro, Sao Paulo | Egypt: Cairo | Turkey: Istanbul | UAE: Dubai | Singapore: Singapore |
Netherlands: Amsterdam | Belgium: Brussels | Austria: Vienna | Switzerland: Zurich, Geneva | Sweden: Stockholm |
Norway: Oslo | Denmark: Copenhagen | Poland: Warsaw | Portugal: Lisbon | Greece: Athens | Ireland: Dublin | Korea:
Seoul | Thailand: Bangkok | Indonesia: Jakarta | Malaysia: Kuala Lumpur | Mexico: Mexico City | Argentina: Buenos
Aires | Kenya: Nairobi
""".replace("\n", " ")
)

COUNTRIES = frozenset(
    """united states|usa|us|uk|united kingdom|england|scotland|france|germany|italy|spain|portugal|japan|china|india|
brazil|canada|
mexico|australia|russia|egypt|turkey|greece|norway|sweden|finland|denmark|poland|netherlands|belgium|austria|switzerland|ireland|
kenya|nigeria|south africa|argentina|chile|peru|colombia|thailand|vietnam|indonesia|malaysia|singapore|south korea|
korea|ukraine|
israel|iran|iraq|saudi arabia|pakistan|bangladesh|new zealand|cuba|morocco|ethiopia|philippines|hungary|romania""".replace(
        "\n", ""
    ).split("|")
)

CURRENCIES: Mapping[str, str] = _table(
    "USD: dollar, dollars, us dollar, us dollars, usd, $, bucks | EUR: euro, euros, eur, € | GBP: pound, pounds, "
    "british pound, gbp, £ | JPY: yen, japanese yen, jpy, ¥ | INR: rupee, rupees, inr, ₹ | CAD: canadian dollar, "
    "canadian dollars, cad | CNY: yuan, renminbi, rmb, cny | AUD: australian dollar, australian dollars, aud | "
    "CHF: franc, swiss franc, chf"
)

LANGUAGES = frozenset(
    """english french german spanish italian portuguese japanese chinese mandarin hindi arabic russian korean dutch
    swedish greek turkish polish latin hebrew malayalam telugu tamil bengali urdu""".split()
)
COLORS = frozenset(
    "red green blue yellow black white brown gray grey orange purple pink gold silver violet turquoise beige".split()
)

# Unit -> the unit's name; unit name -> stems of what it measures. A number in one of these goes to a slot about that.
UNITS: Mapping[str, str] = _table(
    "meter: m, meter, meters, metre, metres | kilometer: km, kms, kilometer, kilometers, kilometre, kilometres | "
    "centimeter: cm, centimeter, centimeters | millimeter: mm, millimeter, millimeters | mile: mi, mile, miles | "
    "foot: ft, foot, feet | inch: inch, inches | yard: yd, yard, yards | kilogram: kg, kgs, kilogram, kilograms | "
    "gram: g, gram, grams | pound: lb, lbs, pound, pounds | ounce: oz, ounce, ounces | ton: ton, tons, tonne, "
    "tonnes | second: s, sec, secs, second, seconds | minute: min, mins, minute, minutes | hour: h, hr, hrs, "
    "hour, hours | day: day, days | week: week, weeks | month: month, months | year: yr, yrs, year, years | "
    "celsius: °c, celsius, centigrade | fahrenheit: °f, fahrenheit | kelvin: k, kelvin | degree: °, degree, "
    "degrees | percent: %, percent, percentage | money: $, €, £, ¥, ₹, dollar, dollars, euro, euros, usd, eur | "
    "liter: l, liter, liters, litre, litres | milliliter: ml, milliliter, milliliters | gallon: gallon, gallons | "
    "cup: cup, cups | speed: m/s, km/h, mph, kph, km/hr, meters/second | acceleration: m/s^2, m/s2 | newton: n, "
    "newton, newtons | joule: j, joule, joules | watt: w, watt, watts | volt: v, volt, volts | ampere: a, amp, "
    "amps, ampere, amperes | coulomb: c, coulomb, coulombs | farad: f, farad, µf, μf, uf, nf, pf | henry: mh, "
    "henry, henries | hertz: hz, khz, mhz, ghz, hertz | pascal: pa, kpa, pascal, atm, bar | volume: m^3, cm^3 | "
    "area: m^2, km^2"
)
MEASURES: Mapping[str, str] = {
    **dict.fromkeys(
        ("meter", "kilometer", "centimeter", "millimeter", "mile", "foot", "inch", "yard"),
        "distance length height width depth radius diameter side base altitude",
    ),
    **dict.fromkeys(("kilogram", "gram", "pound", "ounce", "ton"), "mass weight"),
    **dict.fromkeys(("second", "minute", "hour"), "time duration"),
    **dict.fromkeys(("day", "week", "month", "year"), "time duration period term age"),
    **dict.fromkeys(("celsius", "fahrenheit", "kelvin"), "temperature temp"),
    "degree": "angle degree temperature",
    "percent": "rate percentage percent interest yield ratio probability discount",
    "money": "price amount cost payment investment value principal money budget salary income revenue",
    "liter": "volume", "milliliter": "volume", "gallon": "volume", "cup": "volume cup", "volume": "volume", "area": "area",
    "speed": "speed velocity", "acceleration": "acceleration gravity", "newton": "force", "joule": "energy", "watt": "power",
    "volt": "voltage", "ampere": "current", "coulomb": "charge", "farad": "capacitance", "henry": "inductance",
    "hertz": "frequency", "pascal": "pressure",
}  # fmt: skip
