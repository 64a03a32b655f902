-- The definitions are in generation_definition.
DROP TABLE IF EXISTS projection_definition;
