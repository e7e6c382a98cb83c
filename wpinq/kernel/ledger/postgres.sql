-- The functions of a ledger in PostgreSQL: all that a service may do but read. They run with the rights of the owner
-- of the tables. `append` changes all tables that follow from the entries.

CREATE TABLE leases (
    name TEXT PRIMARY KEY, holder TEXT NOT NULL, accounts TEXT NOT NULL, until TIMESTAMPTZ NOT NULL
);

CREATE FUNCTION append(sequence BIGINT, "time" TEXT, kind TEXT, actor TEXT, target TEXT, amount BIGINT,
    content TEXT, hash BYTEA)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = wpinq, pg_temp AS $body$
#variable_conflict use_column
DECLARE
    before entries;
    recorded json := append.content::json;
BEGIN
    SELECT * INTO before FROM entries ORDER BY sequence DESC LIMIT 1;
    IF append.sequence <> coalesce(before.sequence, 0) + 1 OR append.hash <> sha256(
        coalesce(before.hash, decode(repeat('00', 32), 'hex')) || convert_to(concat_ws(' ', append.sequence,
        append.amount, length(append."time"), length(append.kind), length(append.actor), length(append.target),
        append."time" || append.kind || append.actor || append.target || append.content), 'UTF8'))
    THEN
        RAISE 'entries are appended in order, each with the hash of its chain';
    END IF;
    INSERT INTO entries VALUES (append.sequence, append."time", append.kind, append.actor, append.target,
        append.amount, append.hash, append.content);
    CASE append.kind
    WHEN 'debit' THEN
        UPDATE accounts SET spent = spent + append.amount WHERE name = append.target;
    WHEN 'set budget' THEN
        UPDATE accounts SET budget = append.amount
        WHERE name = append.target AND budget = (recorded->>'previous')::bigint;
    WHEN 'suspend', 'resume' THEN
        UPDATE accounts SET suspended = (append.kind = 'suspend')::int WHERE name = append.target;
    WHEN 'open account' THEN
        INSERT INTO accounts VALUES (append.target, recorded->>'schema', recorded->>'unit', recorded->>'unit_weight',
            append.amount, coalesce((recorded->>'spent')::bigint, 0), 0);
    WHEN 'answers' THEN
        PERFORM 1 FROM measurements WHERE digest = append.target;
    ELSE
        RETURN;
    END CASE;
    IF NOT FOUND THEN
        RAISE 'the entry does not follow from those before it';
    END IF;
    IF append.kind = 'debit' AND recorded->'with' IS NULL THEN
        INSERT INTO measurements SELECT each, append.sequence FROM json_object_keys(recorded->'measurements') AS each;
        INSERT INTO parts SELECT each->>0, each->>1, append.sequence, each->>2
            FROM json_array_elements(recorded->'parts') AS each;
    END IF;
END
$body$;

CREATE FUNCTION add_plan(digest TEXT, entry BIGINT, plan TEXT)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = wpinq, pg_temp AS $body$
BEGIN
    IF add_plan.digest <> encode(sha256(convert_to(add_plan.plan, 'UTF8')), 'hex') THEN
        RAISE 'a plan is kept under its own digest';
    END IF;
    INSERT INTO plans VALUES (add_plan.digest, add_plan.entry, add_plan.plan) ON CONFLICT DO NOTHING;
END
$body$;

CREATE FUNCTION add_answers(measurement TEXT, entry BIGINT, answers BYTEA)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = wpinq, pg_temp AS $body$
BEGIN
    INSERT INTO answers SELECT target, sequence, add_answers.answers FROM entries
        WHERE sequence = add_answers.entry AND kind = 'answers' AND target = add_answers.measurement
        AND content::json->>'digest' = encode(sha256(add_answers.answers), 'hex');
    IF NOT FOUND THEN
        RAISE 'answers are those that their entry stored';
    END IF;
END
$body$;

CREATE FUNCTION begin_lease(name TEXT, holder TEXT, accounts TEXT, seconds FLOAT)
RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = wpinq, pg_temp AS $body$
BEGIN
    INSERT INTO leases VALUES (begin_lease.name, begin_lease.holder, begin_lease.accounts,
        clock_timestamp() + make_interval(secs => begin_lease.seconds));
END
$body$;

CREATE FUNCTION end_lease(name TEXT, standing BOOLEAN)
RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER SET search_path = wpinq, pg_temp AS $body$
BEGIN
    DELETE FROM leases AS each WHERE each.name = end_lease.name
        AND (NOT end_lease.standing OR each.until > clock_timestamp());
    RETURN FOUND;
END
$body$;
