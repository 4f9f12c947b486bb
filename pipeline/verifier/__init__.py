"""The trusted core: from a candidate's source to a verdict. It knows nothing of the rooms around it."""
