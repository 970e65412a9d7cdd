-- Blocks that are live at an instant, without a look at the rows of the others.
CREATE INDEX block_rows_by_life ON block_rows(device, birth_event, free_event);
