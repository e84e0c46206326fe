-- The database of a batch as the version before the store made it: format 2.
BEGIN TRANSACTION;
CREATE TABLE attempts (
  number INTEGER NOT NULL,
  era INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  target TEXT NOT NULL,
  result TEXT NOT NULL,
  rule TEXT,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  micro_usd INTEGER,
  PRIMARY KEY (number, era, attempt)
) WITHOUT ROWID;
INSERT INTO "attempts" VALUES(0,0,0,1795530670720,1795530670725,'played','accepted',NULL,10,5,15);
INSERT INTO "attempts" VALUES(1,0,0,1795530670739,1795530670741,'played','invalid','type',10,5,15);
INSERT INTO "attempts" VALUES(1,0,1,1795530670755,1795530670757,'played','accepted',NULL,10,5,15);
INSERT INTO "attempts" VALUES(2,0,0,1795530670759,1795530670761,'played','not_json','json',10,5,15);
INSERT INTO "attempts" VALUES(2,0,1,1795530670775,1795530670777,'played','not_json','json',10,5,15);
INSERT INTO "attempts" VALUES(2,0,2,1795530670791,1795530670793,'played','not_json','json',10,5,15);
INSERT INTO "attempts" VALUES(2,1,0,1795530670932,1795530670943,'played','not_json','json',10,5,15);
INSERT INTO "attempts" VALUES(2,1,1,1795530670951,1795530670953,'played','not_json','json',10,5,15);
INSERT INTO "attempts" VALUES(2,1,2,1795530670963,1795530670965,'played','not_json','json',10,5,15);
INSERT INTO "attempts" VALUES(3,0,0,1795530670803,1795530670806,'played','accepted',NULL,10,5,15);
INSERT INTO "attempts" VALUES(7,0,0,1795530670979,1795530670981,'played','not_json','json',10,5,15);
CREATE TABLE batch (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "batch" VALUES('contract','{"schema":{"type":"object","title":"new"},"instructions":"Read."}');
INSERT INTO "batch" VALUES('dedupe','true');
INSERT INTO "batch" VALUES('part_rows','3');
INSERT INTO "batch" VALUES('source','"rows.jsonl"');
CREATE TABLE contracts (id INTEGER PRIMARY KEY, contract TEXT NOT NULL UNIQUE);
INSERT INTO "contracts" VALUES(1,'{"schema":{"type":"object"},"instructions":"Read."}');
CREATE TABLE earlier (id INTEGER PRIMARY KEY, number INTEGER NOT NULL, contract INTEGER NOT NULL, line TEXT NOT NULL);
INSERT INTO "earlier" VALUES(1,2,1,'{"error":{"class":"rejected","message":"no valid answer: after 3 attempts: Not JSON at $"},"calls":[{"attempt":1,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670759,"ended":1795530670761,"text":"no, for the 1. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}},{"attempt":2,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670775,"ended":1795530670777,"text":"no, for the 2. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}},{"attempt":3,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670791,"ended":1795530670793,"text":"no, for the 3. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}}],"usage":{"input_tokens":30,"output_tokens":15,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":45,"micro_usd":45}}');
INSERT INTO "earlier" VALUES(2,3,1,'{"value":{"number":8},"origin":{"from":"model","target":"played"},"trust":{"leaves":1,"free":1,"other":{}},"calls":1,"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15}}');
CREATE TABLE inputs (number INTEGER PRIMARY KEY, input TEXT NOT NULL);
INSERT INTO "inputs" VALUES(0,'text 0');
INSERT INTO "inputs" VALUES(1,'text 3');
INSERT INTO "inputs" VALUES(2,'text 7');
INSERT INTO "inputs" VALUES(3,'text 8');
INSERT INTO "inputs" VALUES(4,'text 0');
INSERT INTO "inputs" VALUES(6,'text 11');
INSERT INTO "inputs" VALUES(7,'text 17');
CREATE TABLE parts (part INTEGER PRIMARY KEY, open INTEGER NOT NULL, written INTEGER NOT NULL);
INSERT INTO "parts" VALUES(0,0,0);
INSERT INTO "parts" VALUES(1,1,0);
INSERT INTO "parts" VALUES(2,2,0);
CREATE TABLE reasons (reason TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "reasons" VALUES('input',1);
INSERT INTO "reasons" VALUES('rejected (json)',1);
CREATE TABLE results (number INTEGER PRIMARY KEY, line TEXT NOT NULL);
INSERT INTO "results" VALUES(0,'{"value":{"number":0},"origin":{"from":"model","target":"played"},"trust":{"leaves":1,"free":1,"other":{}},"calls":1,"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15}}');
INSERT INTO "results" VALUES(1,'{"value":{"number":3},"origin":{"from":"model","target":"played"},"trust":{"leaves":1,"free":0,"other":{"patched":{"count":1,"paths":["$.number"]}}},"calls":2,"usage":{"input_tokens":20,"output_tokens":10,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":30,"micro_usd":30}}');
INSERT INTO "results" VALUES(2,'{"error":{"class":"rejected","message":"no valid answer: after 3 attempts: Not JSON at $"},"calls":[{"attempt":1,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670932,"ended":1795530670943,"text":"no, for the 4. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}},{"attempt":2,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670951,"ended":1795530670953,"text":"no, for the 5. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}},{"attempt":3,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670963,"ended":1795530670965,"text":"no, for the 6. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}}],"usage":{"input_tokens":30,"output_tokens":15,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":45,"micro_usd":45}}');
INSERT INTO "results" VALUES(5,'{"error":{"class":"config","message":"rows.jsonl:6: no object"},"calls":[],"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":0,"micro_usd":0}}');
CREATE TABLE rows (
  number INTEGER PRIMARY KEY,
  id TEXT NOT NULL,
  state INTEGER NOT NULL,
  bad INTEGER NOT NULL DEFAULT 0,
  leader INTEGER,
  era INTEGER NOT NULL DEFAULT 0
);
INSERT INTO "rows" VALUES(0,'"r0"',1,0,NULL,0);
INSERT INTO "rows" VALUES(1,'"r3"',1,0,NULL,0);
INSERT INTO "rows" VALUES(2,'"r7"',2,0,NULL,1);
INSERT INTO "rows" VALUES(3,'"r8"',0,0,NULL,1);
INSERT INTO "rows" VALUES(4,'"again"',1,0,0,0);
INSERT INTO "rows" VALUES(5,'null',2,1,NULL,0);
INSERT INTO "rows" VALUES(6,'"open"',0,0,NULL,0);
INSERT INTO "rows" VALUES(7,'"begun"',0,0,NULL,0);
CREATE TABLE states (number INTEGER PRIMARY KEY, state TEXT NOT NULL);
INSERT INTO "states" VALUES(7,'{"run":{"digest":"59587788f83a9f3bf9f9e1eab8b45d10","input":{"messages":[{"role":"user","parts":[{"type":"text","text":"text 17"}]}],"source":"text 17","data":null,"seed":null},"state":"Ready","started":1795530670979,"ids":1,"draws":1,"jitter":5057181608136600590,"position":{"target":0,"mode":0,"called":true,"furthest":0,"unpaid":[],"bounded":false,"has_bounds":false,"refuses_patches":false,"advice":{"targets":[],"thresholds":{"impossible_requests":2,"prose_requests":5,"window_requests":10,"ignored_schemas":3,"trial_calls":20,"trial_seconds":600,"bounds_seconds":3600,"unbounded_every":10,"complete_answers":2,"failed_calls":3,"window_calls":10,"outage_seconds":30,"max_outage_seconds":600,"busy_seconds":5,"observation_seconds":3600},"fails_fast":false}},"request":{"asked":"whole","counts":true,"feedback":{"role":"user","keep_previous":true,"fold":false,"template":{"before":"That answer does not fit. What is wrong with it:\n","line":"- {message}","after":"\n\nAnswer again with the corrected JSON document only.","is_grouped":true},"unending":{"before":"Your last answer was cut off, because these values did not end:\n","line":"- {path}","after":"\n\nAnswer again, and give in these places only what the task says.","is_grouped":true}},"sampling":{},"max_tokens":null,"limit":null},"counters":{"attempts":1,"on_target":1,"patches":0,"faults":0,"spent":{"tokens":15,"micro_usd":15}},"drafts":{"previous":"no, for the 1. time","wrong":0,"current":null,"best":null},"ledger":[{"attempt":1,"target":"played","dialect":"prompt","enforcement":"none","patched":[],"sampling":{},"skipped":[],"started":1795530670979,"ended":1795530670981,"text":"no, for the 1. time","finish":"stop","edits":[],"usage":{"input_tokens":10,"output_tokens":5,"cached_tokens":0,"reasoning_tokens":0,"estimated":false},"cost":{"tokens":15,"micro_usd":15},"verdict":{"result":"failed","failure":{"class":"not_json","violations":[{"path":"$","pointer":"","rule":"json","expected":"","found":"no JSON object or array in the text","stage":"read","severity":"error","message":"Not JSON at $: no JSON object or array in the text"}]}}}],"size":{"longest":5,"raised":0,"within":null},"expects_reask":false,"estimates":{"patch":null,"whole":{"tokens":98,"micro_usd":98},"next":null},"last_evidence":null},"stored":1,"deferred":0}');
CREATE TABLE totals (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  rows INTEGER NOT NULL,
  accepted INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  calls INTEGER NOT NULL,
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL,
  unpriced INTEGER NOT NULL
);
INSERT INTO "totals" VALUES(1,8,3,2,11,110,55,165,0);
CREATE UNIQUE INDEX rows_by_id ON rows (id) WHERE bad = 0;
CREATE INDEX open_rows ON rows (number) WHERE state = 0 AND leader IS NULL;
CREATE INDEX rows_by_leader ON rows (leader) WHERE leader IS NOT NULL;
COMMIT;PRAGMA application_id = 1719100020;
PRAGMA user_version = 2;
