"""The parts of a module: walk the modules inside modules, copy parts, save and load their state."""
