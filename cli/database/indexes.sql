CREATE INDEX block_rows_by_birth ON block_rows(birth_event);
CREATE INDEX block_rows_by_address ON block_rows(address);
CREATE INDEX block_rows_by_bytes ON block_rows(bytes);
