-- A search by time looks a hundred entries up in a hundred boards. With blocks of 64 KiB, the default, each of them decompresses eight
-- granules of a narrow column for the one that it needs. Smaller blocks take a fifth of the processor time of that query (27.5 → 22 ms,
-- 1 M entries) and 4 % more disk. Parts get them when they are written or merged.
ALTER TABLE leaderboard_entry__* MODIFY SETTING min_compress_block_size = 16384;
