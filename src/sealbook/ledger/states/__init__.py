"""The state of every partition: who may read it, who may judge, and who may override (R-STATE)."""
