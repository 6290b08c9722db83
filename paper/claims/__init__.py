"""Every figure and table of the paper, reproduced and judged: see items.py for the list, item.py for what one is."""
