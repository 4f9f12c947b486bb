"""Leaves names and modes in its scratch directory on which a careless clean-up stumbles."""
# expect: ok or output

import os

for name in ("-rf", "new\nline", "x" * 255, "\udcff\udcfe", "* ; reboot"):
    open(name, "w").close()
os.symlink("/", "root")
os.symlink("loop", "loop")
os.mkfifo("pipe")
os.mkdir("closed")
open("closed/file", "w").close()
os.chmod("closed", 0)
for _ in range(300):
    os.mkdir("deeper-and-deeper")
    os.chdir("deeper-and-deeper")
