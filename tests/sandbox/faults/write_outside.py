"""Writes wherever it can outside the scratch directory, at places that the harness looks at afterwards."""
# expect: ok

import contextlib
import os

database, neighbour = os.environ["FAULT_DATABASE"], os.environ["FAULT_NEIGHBOUR"]
places = [
    database,
    os.path.dirname(database) + "/new",
    neighbour + "/planted",
    "/usr/planted",
    "/etc/planted",
]
for place in places:
    with contextlib.suppress(OSError), open(place, "a") as file:
        file.write("planted")
for place in (database, neighbour):
    with contextlib.suppress(OSError):
        os.chmod(place, 0o777)
    with contextlib.suppress(OSError):
        os.rename(place, place + "-moved")
with contextlib.suppress(OSError):
    os.link(database, "database")
with contextlib.suppress(OSError), open("database", "a") as file:
    file.write("planted")
