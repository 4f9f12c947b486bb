-- A database as kernelproof 0.1.0 wrote it (migration 0001): `sqlite3 FILE .dump`.
PRAGMA application_id = 1802531430;
BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001_first_tables');
CREATE TABLE attempts (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	problem INTEGER NOT NULL, 
	sample INTEGER NOT NULL, 
	turn INTEGER NOT NULL, 
	parent_id INTEGER, 
	prompt INTEGER, 
	status TEXT, 
	created VARCHAR(32) NOT NULL, 
	finished VARCHAR(32), 
	CONSTRAINT pk_attempts PRIMARY KEY (id), 
	CONSTRAINT ck_attempts_ck_attempts_key CHECK (sample >= 0 AND turn >= 1), 
	CONSTRAINT fk_attempts_parent_id FOREIGN KEY(parent_id) REFERENCES attempts (id), 
	CONSTRAINT fk_attempts_problem FOREIGN KEY(problem) REFERENCES problems (id), 
	CONSTRAINT fk_attempts_prompt FOREIGN KEY(prompt) REFERENCES prompts (id), 
	CONSTRAINT fk_attempts_run_id FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT uq_attempts_run_id_problem_sample_turn UNIQUE (run_id, problem, sample, turn)
);
INSERT INTO "attempts" VALUES(1,1,1,0,1,NULL,1,'correct','2026-11-20T14:03:51.077+00:00','2026-11-20T14:03:51.096+00:00');
INSERT INTO "attempts" VALUES(2,1,1,1,1,NULL,1,'build_error','2026-11-20T14:03:51.100+00:00','2026-11-20T14:03:51.106+00:00');
INSERT INTO "attempts" VALUES(3,1,2,0,1,NULL,1,'no_code','2026-11-20T14:03:51.110+00:00','2026-11-20T14:03:51.112+00:00');
CREATE TABLE builds (
	verification_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	state TEXT NOT NULL, 
	name TEXT NOT NULL, 
	library TEXT, 
	library_sha256 TEXT, 
	cached BOOLEAN NOT NULL, 
	duration_s FLOAT NOT NULL, 
	commands TEXT NOT NULL, 
	log_sha256 VARCHAR(64), 
	CONSTRAINT pk_builds PRIMARY KEY (verification_id, position), 
	CONSTRAINT fk_builds_log_sha256 FOREIGN KEY(log_sha256) REFERENCES texts (sha256), 
	CONSTRAINT fk_builds_verification_id FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
INSERT INTO "builds" VALUES(1,0,'k','ok','ext',NULL,NULL,0,0.0,'["c++ x"]','129831a9aa9711d9aff794e6049fef4809c47502938bcb9a785957eae01eed02');
INSERT INTO "builds" VALUES(2,0,'k','ok','ext',NULL,NULL,0,0.0,'["c++ x"]','129831a9aa9711d9aff794e6049fef4809c47502938bcb9a785957eae01eed02');
CREATE TABLE candidates (
	id INTEGER NOT NULL, 
	attempt_id INTEGER NOT NULL, 
	source_sha256 VARCHAR(64), 
	status TEXT, 
	method TEXT NOT NULL, 
	warnings TEXT NOT NULL, 
	span_start INTEGER, 
	span_end INTEGER, 
	created VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_candidates PRIMARY KEY (id), 
	CONSTRAINT fk_candidates_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id), 
	CONSTRAINT fk_candidates_source_sha256 FOREIGN KEY(source_sha256) REFERENCES texts (sha256)
);
INSERT INTO "candidates" VALUES(1,1,'7dd1bd9656edf2bb109e59e48160b38885bc097d454dba350a1c6d28dbc707a9',NULL,'fence','[]',10,29,'2026-11-20T14:03:51.084+00:00');
INSERT INTO "candidates" VALUES(2,2,'7dd1bd9656edf2bb109e59e48160b38885bc097d454dba350a1c6d28dbc707a9',NULL,'fence','[]',10,29,'2026-11-20T14:03:51.104+00:00');
CREATE TABLE checks (
	verification_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	asked TEXT NOT NULL, 
	seen TEXT NOT NULL, 
	figures TEXT NOT NULL, 
	CONSTRAINT pk_checks PRIMARY KEY (verification_id, position), 
	CONSTRAINT fk_checks_verification_id FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
INSERT INTO "checks" VALUES(1,0,'output_values','pass','Equal?','Yes.','{}');
INSERT INTO "checks" VALUES(2,0,'output_values','pass','Equal?','Yes.','{}');
CREATE TABLE environments (
	id INTEGER NOT NULL, 
	fingerprint VARCHAR(64) NOT NULL, 
	device_name TEXT NOT NULL, 
	gpu_name TEXT, 
	gpu_uuid TEXT, 
	driver TEXT, 
	cuda TEXT, 
	torch TEXT NOT NULL, 
	python TEXT NOT NULL, 
	nvcc TEXT, 
	cxx TEXT, 
	cpu TEXT NOT NULL, 
	host_sha256 TEXT NOT NULL, 
	kernelproof TEXT NOT NULL, 
	facts TEXT NOT NULL, 
	CONSTRAINT pk_environments PRIMARY KEY (id), 
	CONSTRAINT uq_environments_fingerprint UNIQUE (fingerprint)
);
INSERT INTO "environments" VALUES(1,'d8a639fdf94e9d11ddc0f8e2e79e6fe957cf9f13d8698075c173376daa4262f8','Test CPU',NULL,NULL,NULL,NULL,'2.13.0','3.11.7',NULL,NULL,'Test CPU','1111111111111111111111111111111111111111111111111111111111111111','0.1.0','{"kernelproof":"0.1.0","python":"3.11.7","torch":"2.13.0","cuda":null,"driver":null,"nvcc":null,"cxx":null,"platform":"Linux","cpu":"Test CPU","cores":2,"memory_bytes":8589934592,"host_sha256":"1111111111111111111111111111111111111111111111111111111111111111","gpu":null}');
CREATE TABLE findings (
	verification_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	rule TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	status TEXT, 
	line INTEGER, 
	message TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	CONSTRAINT pk_findings PRIMARY KEY (verification_id, position), 
	CONSTRAINT fk_findings_verification_id FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
INSERT INTO "findings" VALUES(1,0,'bare_except','warning',NULL,7,'Do not.','');
CREATE TABLE measurements (
	verification_id INTEGER NOT NULL, 
	baseline TEXT NOT NULL, 
	candidate_ms FLOAT NOT NULL, 
	baseline_ms FLOAT NOT NULL, 
	speedup FLOAT NOT NULL, 
	speedup_low FLOAT NOT NULL, 
	speedup_high FLOAT NOT NULL, 
	pace TEXT NOT NULL, 
	resolution FLOAT NOT NULL, 
	aa_spread FLOAT NOT NULL, 
	host_ms FLOAT NOT NULL, 
	overhead_ms FLOAT NOT NULL, 
	flush_bytes INTEGER NOT NULL, 
	slots INTEGER NOT NULL, 
	"order" TEXT NOT NULL, 
	clocks_before TEXT NOT NULL, 
	clocks_after TEXT NOT NULL, 
	candidate_samples_ms TEXT NOT NULL, 
	baseline_samples_ms TEXT NOT NULL, 
	CONSTRAINT pk_measurements PRIMARY KEY (verification_id), 
	CONSTRAINT fk_measurements_verification_id FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
INSERT INTO "measurements" VALUES(1,'eager',0.5,1.0,2.0,1.98,2.02,'faster',0.01,0.002,0.5,0.01,0,4,'["BC"]','{"load_1min":0.5}','{}','[[0.5]]','[[1.0]]');
CREATE TABLE problems (
	id INTEGER NOT NULL, 
	problem_id TEXT NOT NULL, 
	suite TEXT NOT NULL, 
	level INTEGER, 
	name TEXT NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	sizes TEXT NOT NULL, 
	signature TEXT NOT NULL, 
	summary TEXT NOT NULL, 
	CONSTRAINT pk_problems PRIMARY KEY (id), 
	CONSTRAINT fk_problems_sha256 FOREIGN KEY(sha256) REFERENCES texts (sha256), 
	CONSTRAINT uq_problems_problem_id_sha256 UNIQUE (problem_id, sha256)
);
INSERT INTO "problems" VALUES(1,'level1/1','kernelproof',1,'softmax','037582edd4b683b4639e3d38fa22d4a4d53aed8537762d3bd0f18b1ef61846eb','{}','{"init":[],"forward":[]}','Softmax over the last dimension.');
INSERT INTO "problems" VALUES(2,'level1/2','kernelproof',1,'softmax','941ab796a2c7c60ca285b4c356174cb9ad1ef8816bd4230206d1bd914963ae0e','{}','{"init":[],"forward":[]}','Softmax over the last dimension.');
CREATE TABLE prompts (
	id INTEGER NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	template TEXT NOT NULL, 
	template_sha256 VARCHAR(64) NOT NULL, 
	system_sha256 VARCHAR(64) NOT NULL, 
	user_sha256 VARCHAR(64) NOT NULL, 
	history_sha256 VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_prompts PRIMARY KEY (id), 
	CONSTRAINT fk_prompts_history_sha256 FOREIGN KEY(history_sha256) REFERENCES texts (sha256), 
	CONSTRAINT fk_prompts_system_sha256 FOREIGN KEY(system_sha256) REFERENCES texts (sha256), 
	CONSTRAINT fk_prompts_user_sha256 FOREIGN KEY(user_sha256) REFERENCES texts (sha256), 
	CONSTRAINT uq_prompts UNIQUE (sha256, template, template_sha256, system_sha256, user_sha256, history_sha256)
);
INSERT INTO "prompts" VALUES(1,'52dace0c95e9621bd33e7e60881d1669547a22627fa579ce7f9f51c267a008c3','basic-v1','0000000000000000000000000000000000000000000000000000000000000000','24802543ea94d571f4f672d5adc321cff6fc45cce9d20c721a0dc0c00cbf22b0','52dace0c95e9621bd33e7e60881d1669547a22627fa579ce7f9f51c267a008c3','b78468a229b3e738ce843e193e9373e1ea532930c5c8c66886e86dbb8bfd6157');
CREATE TABLE responses (
	id INTEGER NOT NULL, 
	attempt_id INTEGER NOT NULL, 
	ordinal INTEGER NOT NULL, 
	error TEXT, 
	raw_sha256 VARCHAR(64), 
	text_sha256 VARCHAR(64), 
	reasoning_sha256 VARCHAR(64), 
	refusal TEXT, 
	finish_reason TEXT, 
	request_id TEXT, 
	served_model TEXT, 
	system_fingerprint TEXT, 
	prompt_tokens INTEGER, 
	completion_tokens INTEGER, 
	reasoning_tokens INTEGER, 
	cached_tokens INTEGER, 
	latency_s FLOAT, 
	created VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_responses PRIMARY KEY (id), 
	CONSTRAINT fk_responses_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id), 
	CONSTRAINT fk_responses_raw_sha256 FOREIGN KEY(raw_sha256) REFERENCES texts (sha256), 
	CONSTRAINT fk_responses_reasoning_sha256 FOREIGN KEY(reasoning_sha256) REFERENCES texts (sha256), 
	CONSTRAINT fk_responses_text_sha256 FOREIGN KEY(text_sha256) REFERENCES texts (sha256), 
	CONSTRAINT uq_responses_attempt_id_ordinal UNIQUE (attempt_id, ordinal)
);
INSERT INTO "responses" VALUES(1,1,1,NULL,'4aecf0e4e91d2288f2cb7e8428340aca92f49a741310b6cab754d4f73fa48d67','b2d9ef6c6590f56256cd11248d30637b6b96a6661d25175f30df908f5dfbe243','b82e2178ecf4d0c5859dc2e169d7fed8673f9f6eeb9f3591bed5f253b7742408',NULL,'stop','r-1','served',NULL,10,20,NULL,NULL,1.5,'2026-11-20T14:03:51.081+00:00');
INSERT INTO "responses" VALUES(2,2,1,NULL,'4aecf0e4e91d2288f2cb7e8428340aca92f49a741310b6cab754d4f73fa48d67','b2d9ef6c6590f56256cd11248d30637b6b96a6661d25175f30df908f5dfbe243','b82e2178ecf4d0c5859dc2e169d7fed8673f9f6eeb9f3591bed5f253b7742408',NULL,'stop','r-1','served',NULL,10,20,NULL,NULL,1.5,'2026-11-20T14:03:51.101+00:00');
INSERT INTO "responses" VALUES(3,3,1,NULL,'166b52d20e6e723b3783cedcefbfde787c82742b6a15bdba212d72578eb8c58b','c08cc470e55afcf25b8b395fb2632d3d543329eae74bac7ef60315d8d0ecd9f8','b82e2178ecf4d0c5859dc2e169d7fed8673f9f6eeb9f3591bed5f253b7742408',NULL,'stop','r-1','served',NULL,10,20,NULL,NULL,1.5,'2026-11-20T14:03:51.111+00:00');
CREATE TABLE retractions (
	verification_id INTEGER NOT NULL, 
	reason TEXT NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_retractions PRIMARY KEY (verification_id), 
	CONSTRAINT fk_retractions_verification_id FOREIGN KEY(verification_id) REFERENCES verifications (id)
);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	name TEXT, 
	kind TEXT NOT NULL, 
	model TEXT NOT NULL, 
	base_url TEXT, 
	template TEXT, 
	template_sha256 VARCHAR(64), 
	backend TEXT NOT NULL, 
	size TEXT NOT NULL, 
	turns INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_runs PRIMARY KEY (id), 
	CONSTRAINT uq_runs_key UNIQUE ("key")
);
INSERT INTO "runs" VALUES(1,'7a9d2d808a4d5016b375fa734ac03313b00385925b7278f6d948bad4cdadade1',NULL,'generate','replay:a.jsonl',NULL,'basic-v1','0000000000000000000000000000000000000000000000000000000000000000','cpp','small',1,'{"name":null,"kind":"generate","model":"replay:a.jsonl","base_url":null,"template":"basic-v1","template_sha256":"0000000000000000000000000000000000000000000000000000000000000000","sampling":{},"turns":1,"verify":{"backend":"cpp","size":"small","trials":3,"measure":true,"measure_seconds":10.0,"target_half_width":0.01,"own_kernel":true,"threads":0,"load_seconds":60.0,"call_seconds":60.0,"build_seconds":600.0,"memory_bytes":17179869184,"unsafe":false}}','2026-11-20T14:03:51.061+00:00');
CREATE TABLE texts (
	sha256 VARCHAR(64) NOT NULL, 
	body TEXT NOT NULL, 
	bytes INTEGER NOT NULL, 
	CONSTRAINT pk_texts PRIMARY KEY (sha256)
);
INSERT INTO "texts" VALUES('037582edd4b683b4639e3d38fa22d4a4d53aed8537762d3bd0f18b1ef61846eb','class Model: ...  # level 1, number 1',37);
INSERT INTO "texts" VALUES('24802543ea94d571f4f672d5adc321cff6fc45cce9d20c721a0dc0c00cbf22b0','You write kernels.',18);
INSERT INTO "texts" VALUES('52dace0c95e9621bd33e7e60881d1669547a22627fa579ce7f9f51c267a008c3','Rewrite Model.',14);
INSERT INTO "texts" VALUES('b78468a229b3e738ce843e193e9373e1ea532930c5c8c66886e86dbb8bfd6157','[["user", "first"], ["assistant", "second"]]',44);
INSERT INTO "texts" VALUES('4aecf0e4e91d2288f2cb7e8428340aca92f49a741310b6cab754d4f73fa48d67','{"choices": [{"message": {"content": "```python\nclass ModelNew: ...\n```"}}]}',78);
INSERT INTO "texts" VALUES('b2d9ef6c6590f56256cd11248d30637b6b96a6661d25175f30df908f5dfbe243','```python
class ModelNew: ...
```',33);
INSERT INTO "texts" VALUES('b82e2178ecf4d0c5859dc2e169d7fed8673f9f6eeb9f3591bed5f253b7742408','hm',2);
INSERT INTO "texts" VALUES('7dd1bd9656edf2bb109e59e48160b38885bc097d454dba350a1c6d28dbc707a9','class ModelNew: ...',19);
INSERT INTO "texts" VALUES('129831a9aa9711d9aff794e6049fef4809c47502938bcb9a785957eae01eed02','warning: unused',15);
INSERT INTO "texts" VALUES('941ab796a2c7c60ca285b4c356174cb9ad1ef8816bd4230206d1bd914963ae0e','class Model: ...  # level 1, number 2',37);
INSERT INTO "texts" VALUES('166b52d20e6e723b3783cedcefbfde787c82742b6a15bdba212d72578eb8c58b','{"choices": [{"message": {"content": "no code"}}]}',50);
INSERT INTO "texts" VALUES('c08cc470e55afcf25b8b395fb2632d3d543329eae74bac7ef60315d8d0ecd9f8','no code',7);
CREATE TABLE verifications (
	id INTEGER NOT NULL, 
	attempt_id INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	status TEXT NOT NULL, 
	backend TEXT NOT NULL, 
	size TEXT NOT NULL, 
	environment_id INTEGER, 
	reason TEXT NOT NULL, 
	problem_id TEXT NOT NULL, 
	problem_sha256 VARCHAR(64) NOT NULL, 
	candidate_sha256 VARCHAR(64) NOT NULL, 
	sandbox_tier TEXT, 
	sandbox TEXT, 
	settings TEXT NOT NULL, 
	seeds TEXT NOT NULL, 
	inputs TEXT NOT NULL, 
	errors TEXT NOT NULL, 
	details_sha256 VARCHAR(64), 
	exit TEXT, 
	stage_seconds TEXT NOT NULL, 
	verifier TEXT NOT NULL, 
	created VARCHAR(32) NOT NULL, 
	CONSTRAINT pk_verifications PRIMARY KEY (id), 
	CONSTRAINT ck_verifications_ck_verifications_kind CHECK (kind IN ('first', 'again', 'reproduce')), 
	CONSTRAINT fk_verifications_attempt_id FOREIGN KEY(attempt_id) REFERENCES attempts (id), 
	CONSTRAINT fk_verifications_details_sha256 FOREIGN KEY(details_sha256) REFERENCES texts (sha256), 
	CONSTRAINT fk_verifications_environment_id FOREIGN KEY(environment_id) REFERENCES environments (id)
);
INSERT INTO "verifications" VALUES(1,1,'first','correct','cpp','small',1,'because','level1/1','037582edd4b683b4639e3d38fa22d4a4d53aed8537762d3bd0f18b1ef61846eb','7dd1bd9656edf2bb109e59e48160b38885bc097d454dba350a1c6d28dbc707a9','A','{"tier":"A","layers":{"network":"none"},"refusals":[]}','{"backend":"cpp","size":"small","trials":3,"measure":true,"measure_seconds":10.0,"target_half_width":0.01,"own_kernel":true,"threads":0,"load_seconds":60.0,"call_seconds":60.0,"build_seconds":600.0,"memory_bytes":17179869184,"unsafe":false}','{"inputs":9223372036854775809}','[]','[{"trial":"drawn","output":0,"dtype":"float32","count":100,"wrong":0,"max_abs":1e-06,"max_rel":1e-06,"relative_norm":1e-07,"reference_relative_norm":1e-07,"nan":0,"first_bad":null,"expected":null,"got":null}]',NULL,NULL,'{"build":12.5}','0.1.0 abc','2026-01-01T00:00:00+00:00');
INSERT INTO "verifications" VALUES(2,2,'first','build_error','cpp','small',1,'because','level1/1','037582edd4b683b4639e3d38fa22d4a4d53aed8537762d3bd0f18b1ef61846eb','7dd1bd9656edf2bb109e59e48160b38885bc097d454dba350a1c6d28dbc707a9',NULL,NULL,'{"backend":"cpp","size":"small","trials":3,"measure":true,"measure_seconds":10.0,"target_half_width":0.01,"own_kernel":true,"threads":0,"load_seconds":60.0,"call_seconds":60.0,"build_seconds":600.0,"memory_bytes":17179869184,"unsafe":false}','{"inputs":9223372036854775809}','[]','[]',NULL,NULL,'{}','0.1.0 abc','2026-01-01T00:00:00+00:00');
CREATE INDEX ix_candidates_attempt_id ON candidates (attempt_id);
CREATE INDEX ix_verifications_leaderboard ON verifications (attempt_id, kind, status, backend, size, environment_id);
CREATE INDEX ix_measurements_leaderboard ON measurements (verification_id, speedup, speedup_low, speedup_high, candidate_ms, baseline_ms, pace, baseline);
CREATE TRIGGER responses_no_update BEFORE UPDATE ON responses BEGIN SELECT RAISE(ABORT, 'responses is append-only: retract, never change'); END;
CREATE TRIGGER responses_no_delete BEFORE DELETE ON responses BEGIN SELECT RAISE(ABORT, 'responses is append-only: retract, never change'); END;
CREATE TRIGGER verifications_no_update BEFORE UPDATE ON verifications BEGIN SELECT RAISE(ABORT, 'verifications is append-only: retract, never change'); END;
CREATE TRIGGER verifications_no_delete BEFORE DELETE ON verifications BEGIN SELECT RAISE(ABORT, 'verifications is append-only: retract, never change'); END;
CREATE TRIGGER builds_no_update BEFORE UPDATE ON builds BEGIN SELECT RAISE(ABORT, 'builds is append-only: retract, never change'); END;
CREATE TRIGGER builds_no_delete BEFORE DELETE ON builds BEGIN SELECT RAISE(ABORT, 'builds is append-only: retract, never change'); END;
CREATE TRIGGER findings_no_update BEFORE UPDATE ON findings BEGIN SELECT RAISE(ABORT, 'findings is append-only: retract, never change'); END;
CREATE TRIGGER findings_no_delete BEFORE DELETE ON findings BEGIN SELECT RAISE(ABORT, 'findings is append-only: retract, never change'); END;
CREATE TRIGGER checks_no_update BEFORE UPDATE ON checks BEGIN SELECT RAISE(ABORT, 'checks is append-only: retract, never change'); END;
CREATE TRIGGER checks_no_delete BEFORE DELETE ON checks BEGIN SELECT RAISE(ABORT, 'checks is append-only: retract, never change'); END;
CREATE TRIGGER measurements_no_update BEFORE UPDATE ON measurements BEGIN SELECT RAISE(ABORT, 'measurements is append-only: retract, never change'); END;
CREATE TRIGGER measurements_no_delete BEFORE DELETE ON measurements BEGIN SELECT RAISE(ABORT, 'measurements is append-only: retract, never change'); END;
CREATE TRIGGER retractions_no_update BEFORE UPDATE ON retractions BEGIN SELECT RAISE(ABORT, 'retractions is append-only: retract, never change'); END;
CREATE TRIGGER retractions_no_delete BEFORE DELETE ON retractions BEGIN SELECT RAISE(ABORT, 'retractions is append-only: retract, never change'); END;
COMMIT;
