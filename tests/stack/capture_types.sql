-- Every column type that Debezium's PostgreSQL connector emits, and its edges (`capture_types.py`).
-- Statements before `-- then:` of a section run before the connectors start: their rows are snapshot rows.
-- `-- section: NAME [needs EXTENSION]` opens a section. One statement is one transaction.

-- section: numbers
CREATE TABLE types.numbers (
  id int PRIMARY KEY, small smallint, whole int, big bigint, object oid, r real, d double precision,
  flag boolean, fixed numeric(10,2), wide numeric(38,10), huge numeric(60,5), free numeric,
  integral numeric(5), part numeric(3,3), cash money);
INSERT INTO types.numbers VALUES (1, 0, 0, 0, 0, 0, 0, false, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO types.numbers VALUES (2, 32767, 2147483647, 9223372036854775807, 4294967295, 3.4028235e38,
  1.7976931348623157e308, true, 99999999.99, 9999999999999999999999999999.9999999999,
  9999999999999999999999999999999999999999999999999999999.99999,
  12345678901234567890123456789012345678901234567890.12345, 99999, 0.999, 92233720368547758.07);
-- then:
INSERT INTO types.numbers VALUES (3, -32768, -2147483648, -9223372036854775808, 1, -3.4028235e38,
  -1.7976931348623157e308, false, -99999999.99, -9999999999999999999999999999.9999999999,
  -9999999999999999999999999999999999999999999999999999999.99999,
  -0.00000000000000000000000000000000000000000001, -99999, -0.999, -92233720368547758.08);
INSERT INTO types.numbers (id) VALUES (4);
INSERT INTO types.numbers (id, r, d, fixed, free) VALUES (5, 'NaN', 'NaN', 'NaN', 'NaN');
INSERT INTO types.numbers (id, r, d, free) VALUES (6, 'Infinity', 'Infinity', 'Infinity');
INSERT INTO types.numbers (id, r, d, free) VALUES (7, '-Infinity', '-Infinity', '-Infinity');
INSERT INTO types.numbers (id, r, d, fixed, free, cash) VALUES (8, '-0', '-0', -0.01, 1e100, -0.01);
INSERT INTO types.numbers (id, r, d, fixed, wide, free) VALUES (9, 1e-45, 5e-324, 1.50, 1e-10, 1.500);
INSERT INTO types.numbers (id, small, whole, big, fixed, wide, free)
  VALUES (10, -1, -1, -1, 1.27, 1.27, 170141183460469231731687303715884105728);
INSERT INTO types.numbers (id, small, whole, big, fixed, wide, free)
  VALUES (11, 63, 64, -65, -1.28, 9223372036854775808, -170141183460469231731687303715884105729);
INSERT INTO types.numbers (id, free) VALUES (12, (repeat('7', 500) || '.' || repeat('3', 500))::numeric);
INSERT INTO types.numbers (id, free) VALUES (13, -repeat('9', 1000)::numeric);
UPDATE types.numbers SET whole = whole + 1, free = free / 3 WHERE id = 1;
DELETE FROM types.numbers WHERE id = 2;

-- section: texts
CREATE TYPE types.mood AS ENUM ('glad', 'sad, very', 'ö"');
CREATE DOMAIN types.email AS text CHECK (VALUE LIKE '%@%');
CREATE DOMAIN types.price AS numeric(6,2);
CREATE TABLE types.texts (
  id int PRIMARY KEY, fixed char(5), varied varchar(10), free text, named name, letter "char", doc json,
  docb jsonb, uid uuid, host inet, net cidr, mac macaddr, mac8 macaddr8, words tsvector, query tsquery,
  mood types.mood, email types.email, price types.price, raw bytea, one bit(1), seven bit(7), many bit(64),
  varbits bit varying(20), lsn pg_lsn);
INSERT INTO types.texts VALUES (1, 'ab', 'hällo', '', 'a name', 'x', '{"a": 1.0, "a": 12345678901234567890}',
  '{"ü": [1.10, 1e3, null, "\u0041"]}', 'b68a35a7-17ad-35b3-af2a-ae46edb4545a', '10.0.0.1/8',
  '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05', 'a:1 fat:2A', 'fat & rat', 'glad', 'a@b', 1.5,
  '\x00ff', '1', '1000001', '1000000000000000000000000000000000000000000000000000000000000001', '101', '16/B374D848');
-- then:
INSERT INTO types.texts (id, fixed, varied, free, doc, docb, raw, one, seven, many, varbits, mood)
  VALUES (2, '', '', E'tab\tnew\nline\u2028\U0001F600', '[]', '123456789012345678901234567890.5', '', '0', '0000000',
  '0111111111111111111111111111111111111111111111111111111111111111', '', 'sad, very');
INSERT INTO types.texts (id) VALUES (3);
INSERT INTO types.texts (id, free, host, net, mood, raw, varbits) VALUES (4, repeat('é', 300), '::1', 'fe80::/10',
  'ö"', decode(repeat('00ff80', 50), 'hex'), '11111111111111111111');
INSERT INTO types.texts (id, free, docb, doc) VALUES (5, '__debezium_unavailable_value', '"infinity"', 'null');
INSERT INTO types.texts (id, doc, docb) VALUES (6,
  '{"deep": [[[{"ü": "\ud83d\ude00", "n": -0.0}]]], "big": 1e400, "long": 0.1000000000000000055511151231257827021181583404541015625}',
  '{"deep": [[[{"ü": "\ud83d\ude00", "n": -0.0}]]], "big": 1e400, "long": 0.1000000000000000055511151231257827021181583404541015625}');
INSERT INTO types.texts (id, fixed, varied, free, host, net, uid, mac, words, letter) VALUES (7, '  a', ' pad  ',
  E'\x01\x7f\u0085\uFEFF\uFFFD quote" back\\slash', 'fe80::1/64', '192.168.0.0/31', 'FFFFFFFF-ffff-ffff-ffff-ffffffffffff',
  'ffff.ffff.ffff', 'a:1A,2B,3C,16383 ''it''''s'':5', E'\\377');
UPDATE types.texts SET free = 'after' WHERE id = 1;

-- section: times
CREATE TABLE types.times (
  id int PRIMARY KEY, day date, t0 time(0), t3 time(3), t6 time, tz timetz, ts0 timestamp(0), ts3 timestamp(3),
  ts6 timestamp, tz0 timestamptz(0), tz3 timestamptz(3), tz6 timestamptz, span interval);
INSERT INTO types.times VALUES (1, '1970-01-01', '00:00', '00:00', '00:00', '00:00+00', '1970-01-01', '1970-01-01',
  '1970-01-01', '1970-01-01 00:00+00', '1970-01-01 00:00+00', '1970-01-01 00:00+00', '0');
-- then:
INSERT INTO types.times VALUES (2, '2017-09-15', '23:59:59', '23:59:59.999', '23:59:59.999999',
  '23:59:59.999999+02:30', '2024-02-29 23:59:59', '2024-02-29 23:59:59.999', '2024-02-29 23:59:59.999999',
  '2024-02-29 23:59:59+02', '2024-02-29 23:59:59.999+02', '2024-02-29 23:59:59.999999-11:30',
  '1 year 2 mons -3 days 04:05:06.789');
INSERT INTO types.times VALUES (3, '0001-01-01', '12:00', '12:00:00.5', '12:00:00.000001', '12:00-12',
  '0001-01-01', '0001-01-01', '0001-01-01', '0001-01-01 00:00+00', '0001-01-01 00:00+00', '0001-01-01 00:00+00',
  '-178000000 years');
INSERT INTO types.times VALUES (4, '9999-12-31', '24:00', '24:00', '24:00', '24:00+00', '9999-12-31 23:59:59',
  '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999', '9999-12-31 23:59:59+00', '9999-12-31 23:59:59.999+00',
  '9999-12-31 23:59:59.999999+00', '1 month');
INSERT INTO types.times (id) VALUES (5);
INSERT INTO types.times (id, day, ts0, ts3, ts6, tz0, tz3, tz6) VALUES
  (6, 'infinity', 'infinity', 'infinity', 'infinity', 'infinity', 'infinity', 'infinity');
INSERT INTO types.times (id, day, ts0, ts3, ts6, tz0, tz3, tz6) VALUES
  (7, '-infinity', '-infinity', '-infinity', '-infinity', '-infinity', '-infinity', '-infinity');
INSERT INTO types.times (id, day) VALUES (8, '0044-03-15 BC');
INSERT INTO types.times (id, day) VALUES (9, '5874897-12-31');
INSERT INTO types.times (id, day) VALUES (10, '4713-01-01 BC');
INSERT INTO types.times (id, day) VALUES (11, '10000-01-01');
INSERT INTO types.times (id, ts0, ts3, ts6) VALUES
  (12, '0044-03-15 12:00 BC', '0044-03-15 12:00:00.5 BC', '0044-03-15 12:00:00.000001 BC');
INSERT INTO types.times (id, tz0, tz3, tz6) VALUES
  (13, '0044-03-15 12:00+00 BC', '0044-03-15 12:00:00.5+00 BC', '0044-03-15 12:00:00.000001+00 BC');
INSERT INTO types.times (id, ts0, ts3, ts6) VALUES (14, '10000-01-01', '20000-02-29', '294275-12-31 23:59:59.999999');
INSERT INTO types.times (id, tz0, tz3, tz6) VALUES
  (15, '10000-01-01 00:00+00', '20000-02-29 00:00+00', '294275-12-31 23:59:59.999999+00');
INSERT INTO types.times (id, day, ts0, ts3, ts6, tz0, tz3, tz6) VALUES (16, '1582-10-10', '1582-10-10 01:02:03',
  '1582-10-10 01:02:03.004', '1582-10-10 01:02:03.000004', '1582-10-10 01:02:03+00', '1582-10-10 01:02:03.004+00',
  '1582-10-10 01:02:03.000004+00');
INSERT INTO types.times (id, day, ts6, tz6) VALUES
  (17, '1900-02-28', '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.9+00');
INSERT INTO types.times (id, ts6, tz6) VALUES (18, '2300-01-01', '1677-01-01 00:00+00');
INSERT INTO types.times (id, tz, span) VALUES (19, '15:59:59.5+15:59', '-1 years -2 mons +3 days -04:05:06.000007');
INSERT INTO types.times (id, tz, span) VALUES (20, '00:00:00-15:59', '-0.000001 seconds');
INSERT INTO types.times (id, tz, span) VALUES (21, '23:59:59.999999-00:30', '10 years');
INSERT INTO types.times (id, tz, span) VALUES (22, '12:00+05:45', '-1 days');
INSERT INTO types.times (id, day, ts6, tz6) VALUES
  (23, '1582-10-04', '1582-10-15 00:00:00', '1582-10-04 23:59:59.999999+00');
INSERT INTO types.times (id, day, ts6, tz6) VALUES (24, '1000-02-28', '1899-12-31 23:59:59.999999', '1900-01-01 00:00+00');
INSERT INTO types.times (id, day, ts6, tz6) VALUES (25, '4713-11-24 BC', '4713-11-24 00:00 BC', '4713-11-24 00:00+00 BC');
DELETE FROM types.times WHERE id = 2;

-- section: arrays
CREATE TABLE types.arrays (
  id int PRIMARY KEY, smalls smallint[], wholes int[], bigs bigint[], reals real[], doubles double precision[],
  fixed numeric(6,2)[], free numeric[], flags boolean[], texts text[], varied varchar(5)[], chars char(3)[],
  uids uuid[], days date[], times time[], zoned timetz[], moments timestamp[], instants timestamptz[], blobs bytea[],
  docs json[], docbs jsonb[], hosts inet[], nets cidr[], macs macaddr[], oids oid[], ranges int4range[]);
INSERT INTO types.arrays VALUES (1, '{1,-2}', '{1,-2}', '{1,-2}', '{0.5,NaN}', '{0.5,-Infinity}', '{1.5,-2}',
  '{1.50,-2,1e30}', '{t,f}', '{"a b","NULL",""}', '{ab}', '{ab}', '{b68a35a7-17ad-35b3-af2a-ae46edb4545b}',
  '{2024-02-29,0001-01-01}', '{23:59:59.999999}', '{23:59:59+02}', '{2024-02-29 23:59:59.999999}',
  '{2024-02-29 23:59:59.999999+02}', '{"\\x00ff"}', '{"{\"a\":1}"}', '{"{\"a\":1}"}', '{10.0.0.1/8}', '{10.0.0.0/8}',
  '{08:00:2b:01:02:03}', '{1,4294967295}', '{"[1,5)"}');
-- then:
INSERT INTO types.arrays VALUES (2, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}',
  '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}');
INSERT INTO types.arrays VALUES (3, '{NULL,1}', '{NULL,1}', '{NULL,1}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
  '{NULL}', '{NULL,a}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}',
  '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}');
INSERT INTO types.arrays (id) VALUES (4);
INSERT INTO types.arrays (id, days, moments, instants) VALUES (5, '{infinity,2024-02-29}', '{-infinity}', '{infinity,NULL}');
INSERT INTO types.arrays (id, days, moments, instants, times, zoned) VALUES (6, '{0044-03-15 BC,NULL,10000-01-01}',
  '{0044-03-15 12:00 BC,20000-02-29}', '{0044-03-15 12:00+00 BC,20000-02-29 00:00+00}', '{24:00,00:00}', '{24:00+00}');
INSERT INTO types.arrays (id, days, moments, instants) VALUES (9, '{1582-10-04,1000-02-28}',
  '{1582-10-10 01:02:03.000004,1000-02-28 00:00,1899-12-31 23:59:59.999999}',
  '{1582-10-10 01:02:03.000004+00,1000-02-28 00:00+00,1899-12-31 23:59:59.999999+00}');
INSERT INTO types.arrays (id, days) VALUES (10, '{1582-10-10,0044-03-15 BC}');
INSERT INTO types.arrays (id, reals, doubles, fixed, free) VALUES (7, '{-0,Infinity}', '{NaN,-0,5e-324}', '{NaN}', '{NaN,1}');
INSERT INTO types.arrays (id, texts, docs, docbs, blobs, chars, varied) VALUES (8, '{"{}","a,b","q\"\\","ö😀",NULL}',
  '{"{\"n\":12345678901234567890.5}"}', '{"[1e3]","null"}', '{"\\x","\\x00"}', '{a,"  b"}', '{" "}');

-- section: ranges
CREATE TABLE types.ranges (id int PRIMARY KEY, wholes int4range, bigs int8range, numbers numrange, moments tsrange,
  instants tstzrange, days daterange, multi int4multirange);
INSERT INTO types.ranges VALUES (1, '[1,5)', '(,5]', '[1.5,)', '[2024-01-01,2024-01-02)',
  '[2024-01-01 00:00+00,infinity)', '[2024-01-01,)', '{[1,2),[5,9)}');
-- then:
INSERT INTO types.ranges VALUES (2, 'empty', 'empty', 'empty', 'empty', 'empty', 'empty', '{}');
INSERT INTO types.ranges (id) VALUES (3);

-- section: shapes
CREATE TYPE types.pair AS (left_part int, right_part text);
CREATE TABLE types.shapes (id int PRIMARY KEY, place point, line line, part lseg, box box, path path, area polygon,
  ring circle, pair types.pair);
INSERT INTO types.shapes VALUES (1, '(1.5,-2)', '{1,2,3}', '[(0,0),(1,1)]', '(1,1),(0,0)', '[(0,0),(1,1)]',
  '((0,0),(1,1),(1,0))', '<(0,0),2>', '(1,"a b")');
-- then:
INSERT INTO types.shapes (id) VALUES (2);
INSERT INTO types.shapes (id, place, ring) VALUES (3, '(1e300,-Infinity)', '<(1,2),0>');

-- section: made
CREATE TABLE types.made (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, number int,
  twice int GENERATED ALWAYS AS (number * 2) STORED, counted bigserial);
INSERT INTO types.made (number) VALUES (1);
-- then:
INSERT INTO types.made (number) VALUES (2);
UPDATE types.made SET number = 3 WHERE id = 1;

-- section: defaults
CREATE TABLE types.defaults (id int PRIMARY KEY, number int DEFAULT 7, word text DEFAULT 'seven', day date DEFAULT '2024-01-01',
  total numeric(6,2) NOT NULL DEFAULT 1.5, moment timestamptz NOT NULL DEFAULT '2024-01-01 00:00+00');
INSERT INTO types.defaults (id) VALUES (1);
-- then:
INSERT INTO types.defaults VALUES (2, NULL, NULL, NULL, 2, '2025-01-01 00:00+00');
INSERT INTO types.defaults VALUES (3, 8, 'eight', '2025-01-01', 3, '2025-01-01 00:00+00');
DELETE FROM types.defaults WHERE id = 3;

-- section: toasted
CREATE TABLE types.toasted (id int PRIMARY KEY, touched int, free text, varied varchar, doc json, docb jsonb, raw bytea,
  texts text[], wholes int[], bigs bigint[], uids uuid[], days date[], blobs bytea[], docs json[], free_number numeric,
  moments timestamp[]);
CREATE TABLE types.toasted_full (LIKE types.toasted INCLUDING ALL);
ALTER TABLE types.toasted_full REPLICA IDENTITY FULL;
ALTER TABLE types.toasted ALTER free SET STORAGE EXTERNAL, ALTER varied SET STORAGE EXTERNAL,
  ALTER doc SET STORAGE EXTERNAL, ALTER docb SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL,
  ALTER texts SET STORAGE EXTERNAL, ALTER wholes SET STORAGE EXTERNAL, ALTER bigs SET STORAGE EXTERNAL,
  ALTER uids SET STORAGE EXTERNAL, ALTER days SET STORAGE EXTERNAL, ALTER blobs SET STORAGE EXTERNAL,
  ALTER docs SET STORAGE EXTERNAL, ALTER free_number SET STORAGE EXTERNAL, ALTER moments SET STORAGE EXTERNAL;
ALTER TABLE types.toasted_full ALTER free SET STORAGE EXTERNAL, ALTER raw SET STORAGE EXTERNAL;
-- then:
INSERT INTO types.toasted SELECT 1, 0, repeat('t', 2100), repeat('v', 2100), to_json(repeat('j', 2100)),
  to_jsonb(repeat('b', 2100)), decode(repeat('ab', 2100), 'hex'), array_fill('x'::text, '{600}'),
  array_fill(7, '{600}'), array_fill(8::bigint, '{300}'),
  array_fill('b68a35a7-17ad-35b3-af2a-ae46edb4545b'::uuid, '{150}'), array_fill('2024-01-01'::date, '{600}'),
  array_fill('\x01'::bytea, '{400}'), array_fill('1'::json, '{400}'), repeat('9', 6000)::numeric,
  array_fill('2024-01-01'::timestamp, '{300}');
UPDATE types.toasted SET touched = 1 WHERE id = 1;
UPDATE types.toasted SET free = 'short now', touched = 2 WHERE id = 1;
UPDATE types.toasted SET id = 2 WHERE id = 1;
DELETE FROM types.toasted WHERE id = 2;
INSERT INTO types.toasted_full (id, touched, free, raw) VALUES
  (1, 0, repeat('t', 2100), decode(repeat('ab', 2100), 'hex'));
UPDATE types.toasted_full SET touched = 1 WHERE id = 1;
DELETE FROM types.toasted_full WHERE id = 1;

-- section: toasted_lists
CREATE DOMAIN types.counts AS int[];
CREATE TABLE types.toasted_lists (id int PRIMARY KEY, touched int, smalls smallint[], reals real[], doubles double precision[],
  fixed numeric(6,2)[], free numeric[], flags boolean[], instants timestamptz[], times time[], zoned timetz[], hosts inet[],
  macs macaddr[], chars char(3)[], oids oid[], ranges int4range[], moods types.mood[], docbs jsonb[], words tsvector, path path,
  area polygon, email types.email, scaled numeric(1000,1), counts types.counts)
  WITH (toast_tuple_target = 128);
DO $$ DECLARE name text; BEGIN
  FOR name IN SELECT attname FROM pg_attribute WHERE attrelid = 'types.toasted_lists'::regclass AND attnum > 2 LOOP
    EXECUTE format('ALTER TABLE types.toasted_lists ALTER %I SET STORAGE EXTERNAL', name); END LOOP; END $$;
-- then:
INSERT INTO types.toasted_lists SELECT 1, 0, array_fill(1::smallint, '{1500}'), array_fill(0.5::real, '{800}'),
  array_fill(0.5::double precision, '{400}'), array_fill(1.5, '{400}'), array_fill(1.5, '{400}'), array_fill(true, '{2500}'),
  array_fill('2024-01-01 00:00+00'::timestamptz, '{400}'), array_fill('12:00'::time, '{400}'), array_fill('12:00+00'::timetz, '{200}'),
  array_fill('10.0.0.1'::inet, '{300}'), array_fill('08:00:2b:01:02:03'::macaddr, '{500}'), array_fill('a'::char(3), '{500}'),
  array_fill(1::oid, '{800}'), array_fill('[1,5)'::int4range, '{200}'), array_fill('glad'::types.mood, '{800}'),
  array_fill('1'::jsonb, '{300}'), array_to_tsvector(ARRAY(SELECT 'word' || n FROM generate_series(1, 400) n)),
  ('[' || repeat('(0,0),', 200) || '(1,1)]')::path, ('(' || repeat('(0,0),', 200) || '(1,1))')::polygon,
  repeat('e', 2100) || '@b', repeat('9', 999)::numeric, array_fill(1, '{800}');
UPDATE types.toasted_lists SET touched = 1 WHERE id = 1;

-- section: keys
CREATE TABLE types.keys (a int, b text, note text, PRIMARY KEY (a, b));
CREATE TABLE types.keyless (note text, number int);
ALTER TABLE types.keyless REPLICA IDENTITY FULL;
INSERT INTO types.keys VALUES (1, 'x', 'one');
INSERT INTO types.keyless VALUES ('same', 1);
-- then:
UPDATE types.keys SET b = 'y' WHERE a = 1;
UPDATE types.keys SET note = NULL WHERE a = 1;
DELETE FROM types.keys WHERE a = 1;
INSERT INTO types.keys VALUES (2, '', 'two');
TRUNCATE types.keys;
UPDATE types.keyless SET number = 2;
DELETE FROM types.keyless;

-- section: evolving
CREATE TABLE types.evolving (id int PRIMARY KEY, number smallint, total numeric(6,2), gone text, part real);
INSERT INTO types.evolving VALUES (1, 1, 1.5, 'a', 0.5);
-- then:
INSERT INTO types.evolving VALUES (2, 2, 2.5, 'b', 0.25);
ALTER TABLE types.evolving ADD COLUMN added timestamptz;
INSERT INTO types.evolving VALUES (3, 3, 3.5, 'c', 0.125, '2024-01-01 00:00+00');
ALTER TABLE types.evolving DROP COLUMN gone;
INSERT INTO types.evolving VALUES (4, 4, 4.5, 0.5, '2024-01-02 00:00+00');
ALTER TABLE types.evolving ALTER number TYPE bigint, ALTER total TYPE numeric(10,2), ALTER part TYPE double precision;
INSERT INTO types.evolving VALUES (5, 5000000000, 12345678.25, 0.1, NULL);
UPDATE types.evolving SET number = 6 WHERE id = 1;

-- section: names
CREATE TABLE types."Weird Name" ("Id" int PRIMARY KEY, "Col-1" int, "2nd col" text, "ü" text);
INSERT INTO types."Weird Name" VALUES (1, 1, 'a', 'b');
-- then:
INSERT INTO types."Weird Name" VALUES (2, 2, NULL, 'ö');

-- section: digits
CREATE TABLE types.digits (id int PRIMARY KEY, thousand numeric(1000,500), rounded numeric(5,-2), tiny numeric(3,8),
  most numeric(38,38), over numeric(39,0));
INSERT INTO types.digits VALUES (1, 0, 0, 0, 0, 0);
-- then:
INSERT INTO types.digits VALUES (2, (repeat('7', 500) || '.' || repeat('3', 500))::numeric, 1234567, 0.00000999,
  ('0.' || repeat('9', 38))::numeric, repeat('9', 39)::numeric);
INSERT INTO types.digits VALUES (3, ('-0.' || repeat('0', 499) || '1')::numeric, -1234567, -0.00000001,
  ('-0.' || repeat('0', 37) || '1')::numeric, -repeat('9', 39)::numeric);
INSERT INTO types.digits (id) VALUES (4);

-- section: domains
CREATE DOMAIN types.work_email AS types.email CHECK (VALUE LIKE '%@work');
CREATE DOMAIN types.mood_now AS types.mood;
CREATE DOMAIN types.birthday AS date NOT NULL DEFAULT '2000-01-01';
CREATE TABLE types.domains (id int PRIMARY KEY, mail types.work_email, mood types.mood_now, born types.birthday,
  counts types.counts, mails types.email[], moods types.mood[], prices types.price[]);
INSERT INTO types.domains VALUES (1, 'a@work', 'glad', '1999-12-31', '{1,NULL}', '{a@b,NULL}', '{glad,"sad, very",NULL}', '{1.5}');
-- then:
INSERT INTO types.domains VALUES (2, NULL, NULL, '1999-12-31', NULL, NULL, NULL, NULL);
INSERT INTO types.domains VALUES (3, 'ö@work', 'ö"', DEFAULT, '{}', '{}', '{"ö\""}', '{-0.01,NULL}');

-- section: nested
CREATE TABLE types.nested (id int PRIMARY KEY, grid int[], words text[][]);
INSERT INTO types.nested VALUES (1, '{1,2}', '{a}');
-- then:
INSERT INTO types.nested VALUES (2, '{{1,2},{3,NULL}}', '{{a,b},{c,d}}');
INSERT INTO types.nested VALUES (3, '[0:1]={5,6}', '{}');
INSERT INTO types.nested VALUES (4, '{{{1},{2}}}', NULL);

-- section: absent
CREATE TABLE types.outlines (id int PRIMARY KEY, lines line[], parts lseg[], paths path[], areas polygon[], rings circle[]);
CREATE TABLE types.absent (id int PRIMARY KEY, cash money[], named name[], spans interval[], varbits bit varying[],
  bits bit(3)[], places point[], boxes box[], pairs types.pair[], path jsonpath, counter xid8, relation regclass,
  snapshot pg_snapshot, place tid, multis int4multirange[], ranges numrange[], letters "char"[], words tsvector[],
  macs macaddr8[], lsns pg_lsn[]);
INSERT INTO types.absent VALUES (1, '{1.5}', '{a}', '{1 day}', '{101}', '{101}', '{"(1,2)"}', '{(1,1),(0,0)}',
  '{"(1,a)"}', '$.a', '7', 'pg_class', '10:20:10,14,15', '(0,1)', '{"{[1,2)}"}', '{"[1.5,2)"}', '{x}', '{a}',
  '{08:00:2b:01:02:03:04:05}', '{0/1}');
-- then:
INSERT INTO types.absent (id) VALUES (2);
INSERT INTO types.absent VALUES (3, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '$', '0', 'pg_type', '1:1:', '(1,2)', '{}',
  '{}', '{}', '{}', '{}', '{}');
INSERT INTO types.outlines VALUES (1, '{"{1,2,3}"}', '{"[(0,0),(1,1)]"}', '{"[(0,0),(1,1)]"}', '{"((0,0),(1,1),(1,0))"}',
  '{"<(0,0),2>"}');
INSERT INTO types.absent (id, bits, boxes, multis, ranges, letters, words, macs, lsns) VALUES (4, '{101,000}', '{(1,1),(0,0)}',
  '{"{[1,2)}",NULL}', '{"[1.5,2)",NULL}', '{x,NULL}', '{a,NULL}', '{08:00:2b:01:02:03:04:05,NULL}', '{0/1,NULL}');

-- section: typed_keys
CREATE TABLE types.typed_keys (number int, uid uuid, total numeric(10,2), day date, moment timestamp, instant timestamptz, padded char(4),
  raw bytea, flag boolean, free numeric, mood types.mood, clock time, note text,
  PRIMARY KEY (number, uid, total, day, moment, instant, padded, raw, flag, free, mood, clock));
INSERT INTO types.typed_keys VALUES (1, 'b68a35a7-17ad-35b3-af2a-ae46edb4545a', 1.50, '0001-01-01', '1582-10-10 01:02:03.000004',
  '1899-12-31 23:59:59.999999+00', 'a', '\x00', false, 1.5, 'glad', '24:00', 'snapshot');
-- then:
INSERT INTO types.typed_keys VALUES (2, 'b68a35a7-17ad-35b3-af2a-ae46edb4545a', 1.50, '0001-01-01', '1582-10-10 01:02:03.000004',
  '1899-12-31 23:59:59.999999+00', 'a ', '\x0000', true, 1e30, 'ö"', '00:00', 'other');
UPDATE types.typed_keys SET note = 'changed' WHERE flag;
INSERT INTO types.typed_keys VALUES (3, '00000000-0000-0000-0000-000000000000', -0.01, '9999-12-31', '9999-12-31 23:59:59.999999',
  '9999-12-31 23:59:59.999999+00', '', '', true, -0.001, 'sad, very', '23:59:59.999999', NULL);
DELETE FROM types.typed_keys WHERE total < 0;

-- section: strict
CREATE TABLE types.strict (id int PRIMARY KEY, tag name NOT NULL, grid int[] NOT NULL, moods types.mood[] NOT NULL,
  twice int NOT NULL GENERATED ALWAYS AS (id * 2) STORED);
INSERT INTO types.strict VALUES (1, 'a', '{1}', '{glad}');
-- then:
INSERT INTO types.strict VALUES (2, 'b', '{{1,2},{3,4}}', '{"sad, very"}');

-- section: made_defaults
CREATE TABLE types.made_defaults (id int PRIMARY KEY, flag boolean DEFAULT true, uid uuid DEFAULT 'b68a35a7-17ad-35b3-af2a-ae46edb4545b',
  moment timestamp DEFAULT '2024-01-01', made timestamptz DEFAULT now(), clock time DEFAULT '12:00', span interval DEFAULT '1 day',
  doc jsonb DEFAULT '{"a": 1}', list int[] DEFAULT '{1}', raw bytea DEFAULT '\x00ff', mood types.mood DEFAULT 'glad',
  part double precision DEFAULT 0.5, free numeric DEFAULT 1.5, fixed numeric(6,2) DEFAULT 1.5, padded char(3) DEFAULT 'a',
  bits bit(7) DEFAULT B'1000001', host inet DEFAULT '10.0.0.1', place point DEFAULT '(1,2)', called name DEFAULT 'x');
INSERT INTO types.made_defaults (id) VALUES (1);
-- then:
INSERT INTO types.made_defaults VALUES (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, NULL);
INSERT INTO types.made_defaults VALUES (3, false, 'b68a35a7-17ad-35b3-af2a-ae46edb4545a', '2025-01-01', '2025-01-01 00:00+00',
  '13:00', '2 days', '[]', '{}', '', 'ö"', 0.25, 2, 2, 'b', B'0000001', '10.0.0.2', '(0,0)', 'y');

-- section: vectors needs vector
CREATE EXTENSION vector;
CREATE TABLE types.vectors (id int PRIMARY KEY, whole vector(3), half halfvec(3), sparse sparsevec(5));
INSERT INTO types.vectors VALUES (1, '[1,-2.5,3]', '[1,-2.5,3]', '{1:1.5,3:-2}/5');
-- then:
INSERT INTO types.vectors (id) VALUES (2);
INSERT INTO types.vectors VALUES (3, '[0,0,1e-30]', '[0,0,65504]', '{}/5');

-- section: contrib needs hstore ltree citext
CREATE EXTENSION hstore;
CREATE EXTENSION ltree;
CREATE EXTENSION citext;
CREATE TABLE types.contrib (id int PRIMARY KEY, pairs hstore, tree ltree, word citext, doc xml, trees ltree[], words citext[]);
INSERT INTO types.contrib VALUES (1, 'a=>1, "b c"=>NULL', 'Top.Science', 'HeLLo', '<a b="1">ö</a>', '{Top,Top.Science}', '{HeLLo,NULL}');
-- then:
INSERT INTO types.contrib (id) VALUES (2);
INSERT INTO types.contrib VALUES (3, '', '', '', '', '{}', '{}');
INSERT INTO types.contrib VALUES (4, '"q\"" => "\\", "ö" => "😀", "" => ""', 'a.b.c', 'ÖÄ', '<a><![CDATA[<]]></a>', '{a.b}', '{"a b","q\""}');
