--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: count_new_contents(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.count_new_contents() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into content_totals (tenant, bytes)
    select tenant, sum(size) from changed group by tenant having sum(size) > 0 order by tenant
    on conflict (tenant) do update set bytes = content_totals.bytes + excluded.bytes;
    return null;
end
$$;


--
-- Name: count_removed_contents(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.count_removed_contents() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    update content_totals total set bytes = total.bytes - removed.bytes
    from (select tenant, sum(size) as bytes from changed group by tenant) removed
    where total.tenant = removed.tenant;
    delete from content_totals where bytes <= 0 and tenant in (select tenant from changed);
    return null;
end
$$;


--
-- Name: give_up_content_object(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.give_up_content_object() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    insert into content_objects (tenant, hash, object, recorded_at, is_removable)
    values (old.tenant, old.hash, old.payload, clock_timestamp(), 1);
    return null;
end
$$;


--
-- Name: refuse_update(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.refuse_update() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    raise exception 'rows of % are immutable', tg_table_name using errcode = 'restrict_violation';
end
$$;


--
-- Name: take_content_object(); Type: FUNCTION; Schema: public; Owner: -
--

CREATE FUNCTION public.take_content_object() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
begin
    delete from content_objects
    where tenant = new.tenant and hash = new.hash and object = new.payload and is_removable = 0;
    if not found then
        raise exception 'the object of a content was given up before the content was stored';
    end if;
    return null;
end
$$;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: agent_versions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.agent_versions (
    created_at timestamp with time zone NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    version bytea NOT NULL,
    name text NOT NULL,
    payload bytea NOT NULL
);


--
-- Name: agents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.agents (
    tenant text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    version bytea NOT NULL
);


--
-- Name: api_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.api_keys (
    key_id uuid NOT NULL,
    secret_hash bytea NOT NULL,
    tenant text NOT NULL,
    scopes text NOT NULL,
    label text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    revoked_at timestamp with time zone,
    limits text
);


--
-- Name: content_objects; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.content_objects (
    recorded_at timestamp with time zone NOT NULL,
    is_removable smallint NOT NULL,
    tenant text NOT NULL,
    hash bytea NOT NULL,
    object bytea NOT NULL
);


--
-- Name: content_sweeps; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.content_sweeps (
    changed_at timestamp with time zone NOT NULL,
    swept_at timestamp with time zone NOT NULL,
    tenant text NOT NULL
);


--
-- Name: content_totals; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.content_totals (
    bytes bigint NOT NULL,
    tenant text NOT NULL
);


--
-- Name: contents; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.contents (
    written_at timestamp with time zone NOT NULL,
    size bigint NOT NULL,
    kind smallint NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    hash bytea NOT NULL,
    payload bytea NOT NULL
)
WITH (toast_tuple_target='4080');
ALTER TABLE ONLY public.contents ALTER COLUMN payload SET STORAGE EXTERNAL;


--
-- Name: environment_command_output; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.environment_command_output (
    "position" bigint NOT NULL,
    command_id uuid NOT NULL,
    tenant text NOT NULL,
    bytes bytea NOT NULL
);


--
-- Name: environment_commands; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.environment_commands (
    inserted_at timestamp with time zone NOT NULL,
    awaited_until timestamp with time zone NOT NULL,
    leased_until timestamp with time zone,
    command_id uuid NOT NULL,
    execution_id uuid NOT NULL,
    is_stopped boolean NOT NULL,
    preferred_worker text,
    worker text,
    tenant text NOT NULL,
    request text NOT NULL,
    outcome text
);


--
-- Name: history_branches; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.history_branches (
    tenant text NOT NULL,
    branch_id uuid NOT NULL,
    parent_branch_id uuid,
    parent_position bigint,
    CONSTRAINT history_branches_check CHECK (((parent_branch_id IS NULL) = (parent_position IS NULL)))
);


--
-- Name: history_segments; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.history_segments (
    branch_id uuid NOT NULL,
    "position" bigint NOT NULL,
    first_index bigint NOT NULL,
    message_count integer NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    payload bytea NOT NULL
)
WITH (toast_tuple_target='4080');
ALTER TABLE ONLY public.history_segments ALTER COLUMN payload SET STORAGE EXTERNAL;


--
-- Name: idempotency_keys; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.idempotency_keys (
    resource_id uuid NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    key text NOT NULL,
    digest bytea NOT NULL
);


--
-- Name: limited_tenants; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.limited_tenants (
    tenant text NOT NULL
);


--
-- Name: removal_turn; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.removal_turn (
    turn smallint NOT NULL,
    CONSTRAINT removal_turn_turn_check CHECK ((turn = 1))
);


--
-- Name: removed_sessions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.removed_sessions (
    session_id uuid NOT NULL,
    parent_session_id uuid,
    branch_id uuid NOT NULL,
    "position" bigint NOT NULL,
    depth bigint NOT NULL,
    message_count bigint NOT NULL,
    history_start bigint NOT NULL,
    removed_at timestamp with time zone NOT NULL,
    stage smallint NOT NULL,
    tenant text NOT NULL,
    root_hash bytea NOT NULL,
    environment_hash bytea NOT NULL,
    context_hash bytea NOT NULL,
    segment_hash bytea NOT NULL
);


--
-- Name: run_events; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_events (
    run_id uuid NOT NULL,
    first_sequence bigint NOT NULL,
    last_sequence bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    payload bytea NOT NULL
)
WITH (toast_tuple_target='4080');
ALTER TABLE ONLY public.run_events ALTER COLUMN payload SET STORAGE EXTERNAL;


--
-- Name: run_journal; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_journal (
    run_id uuid NOT NULL,
    sequence bigint NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    scope text NOT NULL,
    payload bytea NOT NULL,
    tree bytea
)
WITH (toast_tuple_target='4080');
ALTER TABLE ONLY public.run_journal ALTER COLUMN payload SET STORAGE EXTERNAL;


--
-- Name: run_messages; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_messages (
    run_id uuid NOT NULL,
    "position" bigint NOT NULL,
    received_at timestamp with time zone NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    size integer NOT NULL,
    tenant text NOT NULL,
    message_key text NOT NULL,
    status text NOT NULL,
    payload bytea NOT NULL,
    CONSTRAINT run_messages_status_check CHECK ((status = ANY (ARRAY['received'::text, 'applied'::text, 'too_late'::text])))
);


--
-- Name: run_queue; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.run_queue (
    run_id uuid NOT NULL,
    turn bigint NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    leased_until timestamp with time zone,
    enqueued_at timestamp with time zone NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    priority smallint NOT NULL,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    is_held boolean DEFAULT false NOT NULL,
    moves_thread boolean DEFAULT true NOT NULL,
    tenant text NOT NULL,
    thread text COLLATE pg_catalog."C",
    owner text,
    control text,
    request bytea NOT NULL,
    level smallint DEFAULT 0 NOT NULL
)
WITH (fillfactor='70', toast_tuple_target='4080');
ALTER TABLE ONLY public.run_queue ALTER COLUMN request SET STORAGE EXTERNAL;


--
-- Name: runs; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.runs (
    run_id uuid NOT NULL,
    session_id uuid NOT NULL,
    base_session_id uuid,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cache_read_tokens bigint NOT NULL,
    cache_write_tokens bigint NOT NULL,
    reasoning_tokens bigint NOT NULL,
    total_tokens bigint NOT NULL,
    cost double precision,
    step_count bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    started_at timestamp with time zone,
    completed_at timestamp with time zone,
    schema_version smallint NOT NULL,
    output_encoding smallint NOT NULL,
    steps_encoding smallint NOT NULL,
    tenant text NOT NULL,
    agent text NOT NULL,
    agent_version bytea,
    model text NOT NULL,
    mode text NOT NULL,
    status text NOT NULL,
    stop_reason text,
    error text,
    metadata text NOT NULL,
    output bytea NOT NULL,
    steps bytea NOT NULL,
    event_count bigint DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    durability text DEFAULT 'session'::text NOT NULL,
    thread text COLLATE pg_catalog."C",
    thread_moved boolean,
    cost_known_part double precision,
    answered_by text
)
WITH (toast_tuple_target='4080');
ALTER TABLE ONLY public.runs ALTER COLUMN output SET STORAGE EXTERNAL;
ALTER TABLE ONLY public.runs ALTER COLUMN steps SET STORAGE EXTERNAL;


--
-- Name: schema_migrations; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.schema_migrations (
    version bigint NOT NULL,
    description text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);


--
-- Name: sessions; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.sessions (
    session_id uuid NOT NULL,
    parent_session_id uuid,
    run_id uuid,
    branch_id uuid NOT NULL,
    "position" bigint NOT NULL,
    depth bigint NOT NULL,
    execution_count bigint NOT NULL,
    message_count bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    schema_version smallint NOT NULL,
    tenant text NOT NULL,
    agent text NOT NULL,
    agent_version bytea,
    root_hash bytea NOT NULL,
    environment_hash bytea NOT NULL,
    context_hash bytea NOT NULL,
    segment_hash bytea NOT NULL,
    metadata text NOT NULL,
    history_start bigint DEFAULT 0 NOT NULL,
    subagent_of uuid
);


--
-- Name: states; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.states (
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    hash bytea NOT NULL,
    kind text NOT NULL,
    payload bytea NOT NULL,
    tree bytea DEFAULT '\x'::bytea,
    CONSTRAINT states_kind_check CHECK ((kind = ANY (ARRAY['environment'::text, 'context'::text])))
)
WITH (toast_tuple_target='4080');
ALTER TABLE ONLY public.states ALTER COLUMN payload SET STORAGE EXTERNAL;


--
-- Name: threads; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.threads (
    session_id uuid,
    version bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    tenant text NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='80');


--
-- Name: unused_states; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.unused_states (
    tenant text NOT NULL,
    hash bytea NOT NULL,
    is_held boolean NOT NULL
);


--
-- Name: webhook_deliveries; Type: TABLE; Schema: public; Owner: -
--

CREATE TABLE public.webhook_deliveries (
    delivery_id uuid NOT NULL,
    run_id uuid NOT NULL,
    created_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone,
    delivered_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    response_status integer,
    schema_version smallint NOT NULL,
    encoding smallint NOT NULL,
    tenant text NOT NULL,
    status text NOT NULL,
    event text NOT NULL,
    url text NOT NULL,
    secret text,
    owner text,
    error text,
    payload bytea NOT NULL,
    receiver text,
    CONSTRAINT webhook_deliveries_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'delivered'::text, 'dead'::text])))
)
WITH (fillfactor='80');


--
-- Data for Name: agent_versions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.agent_versions VALUES ('2026-11-22 09:38:39.362915+00', 1, 1, 'default', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo', '\x28b52ffd60810035080076d3371f6049db0608b609dbcb2f5dbdf6f8d2b77e848c8e4e6575155bcbc99224ab0431002e002d00c7c2e352c33b3ca68b1c6f2a701b387a53d58ada8333fd3402e8ac641f43610840e7d4f4483616903d81de8948cbc113018ca09afc9c8d5c6d087574e6504b156375377f8e686a2d3c8ca36f26a84d3f2f966adfc2dcc34b5a291c67e35a02ba8ac1b299e19fe6bd90ad308d6c1531929b2a9cfbf364d87e0ea02cd3d15726653f4d021d1b1376b21f83037a8dc193a936bae5ee72fcfc07743e2f0ed5c992568bb78adc6a267dc904571cb3524bb5c8e1e5e22d5a70f456580d0049570b5b636cd3b32e58216aaedd3460d3b75056f9141ba4ee95a62df7398836cc3c');
INSERT INTO public.agent_versions VALUES ('2026-11-22 09:38:39.363017+00', 1, 1, 'default', '\xc5b61e06d31563c19b9eff5f5986ee352adcb98ba19d85bbc3b014c2c5202a03', 'editor', '\x28b52ffd601a00d50500f20c241b802571039f8d2b7eef514a4421ea104282fc245300708c398afa08c7f0d546451885e66de9b6b2b2b9e0df703c0b6631c96f0cc8b959222410fc3bde03d9ade8e35a0528c94c1be7febedae9e4c97321fb5db030551e5dd878b073fd86013907a8167ee792ab0ca5931726296d6575377f472c2985a628d53ef9a640daf3fbc999a66e690de7f91d0679273a04e1460f004908a0548254d9bd31987c002444d92a30976b468d4464eca18c5c61f5344cfb3c6850abcc');
INSERT INTO public.agent_versions VALUES ('2026-11-22 09:38:39.363167+00', 1, 1, 'default', '\x67f5ab32beeaefb27d11ee218b22f06d7ab9ced89fd5fc03964f5f56cb1b39c0', 'researcher', '\x28b52ffd20f04d0500b2cc231c80276d039f6141937b2dd438c95b6cb7687f98c3d028344d0673a10147e1ab8da82808cb0977b6ffde2be92e92b2d9e0dbf13ec85e461fd32a014956baec9b86b2989cfb7b2654b707684af33b4aa3091b0d76a65b8170e70255c3ed4c725511e777a31ca48baceee6ed843a08612148b57fdf34386b6eef4201d8a823f0bbd2d3eb6ce134b7e370ef244c31f0430800b28c0ca5915f263c98d1a0c22f87699f07166a9519');
INSERT INTO public.agent_versions VALUES ('2026-11-22 09:38:39.363133+00', 1, 1, 'default', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', 'keeper', '\x28b52ffd601d000d060032ce271c80356d03960d7dfcde6ba1c629c37e37db044d6445c88172c051d4478d30b87333a5cb8cc266845fda3b81cd90fe51ab0583bc9431eecb1719a2e1829527b1df132255a70f3a8dea85d08a3bd2b99acb5e0ee71ea50efc3baab35e5a017047285a89309dc0be1f59586a3c19dcd9a02af07236b8ba8efc1d31322933abbbf8f263654ac73049b57f5f1cc8452fff7d6936cb3518d14b4bee8d073a043c090b00490be0dd86c11124da4237a1aed455b56c8604e68896263ec51a74a933');
INSERT INTO public.agent_versions VALUES ('2026-11-22 09:38:39.648059+00', 1, 1, 'default', '\x50803335a2c3e85e02633b29a986095c28080e6a58ec56ce21eef879a3137a9e', 'stored', '\x28b52ffd603c004d07007691331f5069e2061fc78cdf4d6e89338d6d13f94244cc627c2832431db308abaa1a542a0028002800898eb5dbc7b33214a79f1fdf56b5538c9ea69f8500ff9cf63b0587017cbf454723d9157ceb22218a2b01ec6779e37896da57f0d999b295fd2410f8a7b09bf0f377286f5ba8e313a4d6ba8397597fbe686aad7b707c3bb6ec0ea6fd92d70d6d9774325e84435f5bf7947f9e94b7dff1cab2fd5c6099a6e397a60d4be2bc9d0b412bd111f8777e5816136068ac0606805e482268320b2669850e4f97221527c3288a69ca28432d8304080045d924262188d118419a7b8462e0b385829418e59a78');


--
-- Data for Name: agents; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.agents VALUES ('default', 'stored', '\x50803335a2c3e85e02633b29a986095c28080e6a58ec56ce21eef879a3137a9e');


--
-- Data for Name: api_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.api_keys VALUES ('01a2029f-39fe-71f8-858e-173d9f5d041d', '\x3ba6967c755f6283c6b2d22e422375de2bb98c039999e8a09b4474d0306e37af', 'default', 'runs:write sessions:read admin', '', '2026-11-22 09:38:39.230991+00', NULL, NULL);


--
-- Data for Name: content_objects; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: content_sweeps; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: content_totals; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: contents; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: environment_command_output; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: environment_commands; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: history_branches; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history_branches VALUES ('default', '01a2029f-3aac-7543-9f3a-86c1b70b04db', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3ad2-7334-9217-c5a44ab34ea1', '01a2029f-3aac-7543-9f3a-86c1b70b04db', 0);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3aef-718d-a6dc-832cc9c71644', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3aef-718d-a6dc-832bd22076b8', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3afc-765b-9cf0-2918a55b8765', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3b18-714c-ae9f-c5df1fe96d08', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3bac-744e-89ed-9b93ba047f6f', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3bb2-7399-a906-6e55d369daaa', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-3bc0-75f9-bc26-38b0902948ef', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a2029f-4583-7335-b00c-09f229ff48ee', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a21ee1-8bfb-7415-be31-1a7b24e176cb', '01a2029f-3aac-7543-9f3a-86c1b70b04db', 1);
INSERT INTO public.history_branches VALUES ('default', '01a21ee1-8cdb-7469-93be-e24f470a4c46', NULL, NULL);
INSERT INTO public.history_branches VALUES ('default', '01a21ee1-8d18-72f6-b3b0-106cf4c3e0eb', '01a21ee1-8cdb-7469-93be-e24f470a4c46', 0);
INSERT INTO public.history_branches VALUES ('default', '01a21ee1-8d60-73fd-8f44-302c9a13ba42', NULL, NULL);


--
-- Data for Name: history_segments; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.history_segments VALUES ('01a2029f-3aac-7543-9f3a-86c1b70b04db', 0, 0, 4, 1, 1, 'default', '\x28b52ffd608a05d51000b6616322206df5e165f673252e9fa8f87ccfd20a4a0003a0a148a0dd25e5d0c6896b0041a020590058005800c8422836a8b487418752d257b31bbd0eb9aee05f84e1b106cf2d81c5b4e5d27a5e24ac44f61bfd0e11bf8e05b94ffb293517d9da5eaddc9ea8bac82e6c99538994f922274a9b9c348f6112667e49141d73dcd8ca85a4752c0413cfd58b5f0453fa662c5eaabc1ceaa6cba50582824a9472eefa94df2577e60632055aa0d83c51d27172d222c7240ff25885169d6370203ed93c19198273496bc9e2985bb9cf0ed4cf5de7228f85cdbd88b586ded356f0064e7990217c18f31e83729d7603f5ce37baaa2fb727d7775c5a04590542a5316669d0a1df1f9bd884dc04a524f7ae0e8dde8463e5fad366548aca60bac8328d6bc7266b9a277a989f83ec34f174268a1af8c98daed4f354cd0c8f55589e838d7991dbd2983297748658ef558ad86b3f506afea2d2f25a51112ba2568003b482dd9bb1daa2ddbefa8117eb600db4f856c1921ec18e001be6088a93cda549f8453179506192f958c3f0d8169f334d3c55ded5810232204042428850e30379302e484081233d54ea20702820a7aeef0f0c0265dcffc3966d22dee790c59964d81d0d806da89daba585094f55e123307185b0205dcd151650188500b09d3e4408beef71b608bb34118693dd67944b3ad4b0305a80342d62312b6b49d8d37d08bd0c241301ce2be5d1be8ddbb12075b08d8c58c95607b72984a65506321df028');
INSERT INTO public.history_segments VALUES ('01a2029f-3aac-7543-9f3a-86c1b70b04db', 1, 4, 4, 1, 1, 'default', '\x28b52ffd608005ad110066636823306df4c0a32ce655c6e03fe2a6b7147a187185de8ada4af9562ee6bb718d1e14140a065d005c005e00cab25e207bcccd19dba2cc78b506c2d52caa043d6476a45722d71bfcab344cd6803507a79e7ab052d98ff4434cfc4a18e47eedafd25c65a776c8caed489a5659863a1d293f381fb718b0398b350d5ccce4b76874cc71632bf78156c210d2730499114fd58e570413fa7e381e9a58f9d35d95438e844685aae4dcd3577e87dc9936c77996d9d8a34c76c16930ba65203ee93c19598273abb5d538e656eef3e2e9e79ee62a935d9a7b94b57e5ee4c5b4c9cb79102ee6afdde00d3d2d5e7c5c6438dd7b0d7b0ecaf5da0fd22f3ed290e9e5f6e4e9170eada26cb33016d63cee9910fd3e59c52ae42aaa04b9f70411e9554856ae7fed07a4313db8aeb2d0716c98523a63a3ccb899fc16ca4611cf452449033f39d2ca2135050d935d600bd316d61cc330ca18cb7b4e0928d89e1d0a4a3a4ba8f709a2ec53475469beaa90f209224d282aa90007e806bbf7433955bb5d75043b14821a50054afa047b428bcd4e331cc681742dd431567c18b8e0d2c486c92e8eb545147104f134204042428850e3038b7d062e084080233d771d0086026a9a18fc6175bfb8fc9945ec673a0dcc5953fb3a872cc52443ee68006c43ed5e2d2d6c78caf61e81832b2405e96aae808002280480edf4d134f07d8cb345d2a579520702cf04971bd90e876201460b74a635594bbb8bee43b0656097089cf3160a37f9504905dafa510e4461250675ce44be9a440521d3168f02');
INSERT INTO public.history_segments VALUES ('01a2029f-3ad2-7334-9217-c5a44ab34ea1', 0, 4, 4, 1, 1, 'default', '\x28b52ffd6085050d1100e6216423306df4c0a3ace554c6e03fe2a7b79c1ba47e80295abaac7dbb8b005f25c857505000065800590059004f9bc19b6c549c0223b4801e4a495fcd7ef442e43a837f1386c816b8c5566b6e41d46065b2ffe87788f8852cc87dda4fa9b9c9d6f66ae5f644d54df62d2d32d41ce7d2d8d21033eea5610d62c8a2f8da63d7562e242d64210353fa76345eaabc1ceaa6cba50602834a9472eefa94df257766ba174e539cb6882063a2c2cc31d3309744564189af294a2242e940191bc27bcc39c6bcf656eef303f573d7b9496415f760d45c4330325bdc64e6c0a661cc018f719c531ab94ebb81fae71f5dd597db93eb3f2e6de29cc770d4b443bf4756b10ab90a4a49ee5d1d1ebd0ac8caf5a7eda81875e5b683e9260b1786ae615c8396f6243b4d3c9f89a2123ff9d1cba555a9e7a99a13cfd58d5f010c9155601867696e4e17a7c32c207c4b6035eeb991b0a433c47aaf52c45efb8152f3179596d78a8a5811b5021ca019ecde8ef516edf6d50fdc58072b11e32258d223d81196760be83468890a4364637ca689a7cabb3edc9418352e06342050222122d2f88c2de7ed08407f979e2976f03714705362f887557ee002688bedaf566b13f13c4396649641b71af8762851ab6580054f69606330714258d8ae7e8505298c2a006c270f11c2f73dce76b03bc12bd310098466b2cb19e54a87a216186fef32e0cda0b705df4c7742c83d102c1338875b2e6e52824a62c348834fe2aae6d500c64f1c8b696b9a01');
INSERT INTO public.history_segments VALUES ('01a2029f-3aac-7543-9f3a-86c1b70b04db', 2, 8, 3, 1, 1, 'default', '\x28b52ffd60bf03bd0d00861c54205069f320df387ab25d1e8b98489bed02545c357aa967fbb6dd2f7d4d565535a84b0048004b00cc3fd317ce0cc937d1cfe8d0e08177001cefa0958025e25ff82b2c3c330e247ff5afce64c4d6efc392bd712c234e18856d2190b5b84a14812469310753d36e09119962bd144ba60c330e023d113a910535d840c1a89e0b884d264d4655c0585a2b214c3196fcad50ff763b1935d82dd6106a396db1d35bb353d2204cdd5f3dd18c983a7b0d790ea98b297a2f892a07d3a254276c60b0e4fbd5139e844de8ca88577b841076531717da4d41dc343d95c671027ef6c28fcb1cd6f96e9ed9f43c5cf187c064de1314cfd83e2e75afc765140589ca54e7b6dbaffd97b9b7232287061bbcb7d8a1c18f294dd3cd73dd2aae9d374791e50d49cecd25b9c8609acb25eba925f95647705ef9853ff625fb6cfbca6518215ee054d4a92551f0bf0d36b041b2a13accbd6e15161e2420304263c8d03e5b3d00263c4afd1a83872f640575f5565040419402e0b6f13afbc0531a658ba84f1d251204cf24f78d6e9f439585d1029e2d7ad2ac8c255ea4fb106e0ff4028173de52619310955cf84d1eba852ca024a2eafcf6c77c2a2ca6ad6906');
INSERT INTO public.history_segments VALUES ('01a2029f-3aef-718d-a6dc-832cc9c71644', 0, 0, 4, 1, 1, 'default', '\x28b52ffd6075068d130096636923206df44449e4ef7664f1b2d048db1c5a4424c0611931926401b4ddb8131d01200470345f005f005e00acb07398081b9c4ed398d594c5059be6adc9902a74a7e9106789e46ff465c561c2078e393d94444560a9f085f885885c963448be925fa94e56d8fa4f2cd9a36a596148217b1c45d3ed6e51a6806b2eef2dc77b594f74cc75632c99422c69080bc98b87efcb0b094bfe2bf9636a58c7b4edeff6d1122b1c9b653e0573de34667a2f0c85a3a82723aaf54a7d1ffaefc728a29b51c19e326106d8b4d7300371917091912d38b75a5b8d638e25df6650bfed76b23261161da6314a9d2b79a303064a7ea45f29772c445147d3bb6d6d3a90390fb643d7632dae9eef2d8f3142e624bfe40ff5322ec4277b25fb6c7b190fb1d2227d1a32b381f0fb8ca04915fa770b01715b6f47d38c7a3ae7cb73663e135e304a402d8a4ad0a3fcdb23050e0e136678b1b5b734ae99b9300d037da1cf31a69f760b5c9336bd286c6f3d0b64cf566b9df150b53ea1228e822220ea306125bf25d47debb8aaa0df7a8454a77ac8719504a9b7538da8a7aa8007f046fffb433525b9bff28876a80435e09a0a43a8b10d418e4c405649494a0bd3063042420839b9071220a3288312a00cc3509452ce088c514634315551a5d962073090816448085ccdab6c682b6af7e36c19c36a6c99dc3fa86c2009c3a1fbab984952366b8511cc4426c3e25696f7df45d738fad69b457f5a79513164f9f6ab84084fd5baeb87842c0951ba18e061fb2c149cd8d91ec4f1049c373a78e6076fc9aab59e5d1d807d079c21eccb2e83afe4242c8a0450724fb1b769c903b4d1dc7b34d83e00a4d0f02386a08241985a80ca77923fd3cb09675a51aa');
INSERT INTO public.history_segments VALUES ('01a2029f-3aef-718d-a6dc-832bd22076b8', 0, 0, 4, 1, 1, 'default', '\x28b52ffd6086055d100026216122304df563a5cce6548841b1131d6fd973680d942e2aae3f3e385f5b3a9d6b60601806570055005700ccd2fd2464e7d0693e25bbd11b11d715fc7b2c54ab2c81e5164467b4dab9a5838dc77ea3bf01e2374221eed37e3ac93db6b6531bb7a5a9eeb10f7a8c7ca06bad2102310c8334658108d4ec90a8694963966c5c686e8442bd7cae3a3d4b949458ae5efc2290f39bb1f8597939d44d97cf0582824e3a39777dcaefd39d5df4de23a58447b5098f71cd53061a1719179b04a1358431e4b5a46ddc6707eae7ae728f6a1dc3ee045292a7ade03d36084c5883b08410e9a4619616d769334cef7ca3a9fa715b727dc7e71ec74208820c1b541afabddac426e226e834ddbb36347a13111bd79f3683525406d33df67951d4b0d75e6bd8940542cdce395692583ad2340dbce4460bd52630b624f02dcc5b9ed6e4e356747e58ef7546ecb51de8247fd1b9bc5213c48aa615e000ad60f7662cb668b7af76e0c53258038dad82151d821d81353b66c82ccb63095ca8b631479258a2bcaba33cddd2396efc400130204042428888e30378d0ed48407e4f0fd31df89d02685278fdc0c04fc69b1fb654f3f038ab2ccc24036e3470dbe951ad9f000b8e52c28ec1c20a5131ba9a1512ac10fa00f036ae5d0e2c5f23771175a9176424b96e64eb1caa5b182d509a0560360e33920fc0f7c0b24ce09cb770dce44529699328b19cbdce11c810b05641c8b4c5a3');
INSERT INTO public.history_segments VALUES ('01a2029f-3afc-765b-9cf0-2918a55b8765', 0, 0, 2, 1, 1, 'default', '\x28b52ffd60b801250a00365542224089e80138c52af301dcb85aa066f7a81186324e5332c558d9b210b63ccd18863913380038003700020c117e86ffa2f1ec2080fcd37fd2c808475e0f18b243346284152919b63c87612e266fba49ae242e354e2bc9794bad4e1443960f3b080248c1830b082ab757cedee991849e445c9af09bf82761214708d8025b45449d6f68b10a1a39ab187cfbbdd511daa19d91032cfd9d4f47bf8d2949d2b2d462c8df07e9df1e45461ebc30c75e33f1fd744433c26ab1b8288eb1e4ada49cf852d31697e261d2e70fa2339c1d902ba29f03050f1e686d616f41aed30de81f9ed164c216e7dac2bfd606f428da594f187ef6d7a7d6662d36ddd473c883071cd31486159e0219053e65582b1300cdf67dd9b218529b807c57865817d4e651c84a30db7769d645b9969cab85ef611dc0ab4da06fba80aadebba519485331a882c5b435cd');
INSERT INTO public.history_segments VALUES ('01a2029f-3afc-765b-9cf0-2918a55b8765', 1, 2, 3, 1, 1, 'default', '\x28b52ffd60c003750f0096a16223406bf4732c56e4421081de6fcdeea129eac8ee8dda88fdef62976221bfd2a8280a3001580056005a0035eeb7f40bc58d6494dee0ebd2af8cab185e3f3ba3f5c7421a464ab0722e9402ec287e07ff06e4f901c1e197fe723e564cbd3ad8619f2665c58dc2291ad84e619dac0636cd72be2cab259eb6a086255827097618467e40088d5bdef2a79fe52d59d603f54b8f9a15330e6aaf95a717e48cef78eee0fce0708dfa59294438c01f3839e663a54b068bf0a823a5fdd6e7d2d92e379a904e68fdf5d4d85e287bebb7d7754657e9e363954f4fac7536363eadd3ae1e75adcea850f6d7fd8245387569e76fc3b15da937c809a1cd6038ea768dd2c2410835c8292073ca8298338b618a653915e183862992c6219ae630cd69120bc656922c8525183bfcbd00fddbe9631561c52dae69e6050a113e684c698cc3553ac3fc857750ac50e06beff1a7e15f3fd6da8f694df196408be25884393c9f55c261c6a4103b2c67fce7951542521fa8933734fd854c91d1d0bab490093201f1711f739a5ccefdea0f9700ef98fb502320404262141277cc44f9f2dc4028923afbcd81558442a58464d365cb45009f1e62b1be388c3d4818b73734942568b9d49e5c372fe452f1a50eb7e71a44d6dcac13c780f0d1483a95c435b28c001ed6462199cd30328adf20926a5185c5b435cd');
INSERT INTO public.history_segments VALUES ('01a2029f-3b18-714c-ae9f-c5df1fe96d08', 0, 0, 4, 1, 1, 'default', '\x28b52ffd607e05d5100036a16222206df5e165f673252e9fa8f8fc96f60a4a0003a0a134b0e82e623cc18c5610407020590058005700d23927591a05264c7b28257d35bbd1eb88eb0afe45181e6bd096c06acba5f5bc48d888ec37fa1d227e1d0b719ff6536a2eb2b5bddab83d517591758e221785394ab3c844cad624bc38984c265f12398e396e6ce342d23a1602959743dd74b9b44050508952ce5d9ff2bbe4cecd5160c4b8e7c0054aa268e1c4611026b0218f55501ec3d832e0bcd8bce83004e792d612c631b7719f1fa89fbbce451e2b1f241f6b9ae5692b78915520e348a948e8359404dd40fdf38daeeac7edc9f51f971641b665f4e683dd0efdfed8c426e2262825b9777568f4261c1bd79f36a352545e64194cdb6b14c60c531a629a7c0fb2d3c4f399286ae02737ba52cf5335279eab17bf08a6f4cd58bc140c8f55808dc3c0063ec93a9a2b3a43acf72a45ecb51f28357f516979ada88815512bc0015ac1eecd586dd16e5ffdc08b75b006dc2a58d123d8115a03a16b989b2d0bc363dd334d3c55def571ba9f549a299bd75a735e5ca701342050222122d3f829252d084079233d4fea206f28e0a582cf0f0cfa649cf7c3966a1adee690059964b89d06bc9d9fc14a0960c05214d8082c9c1015bfab5f21810aa10e00dbc9a371e07d8d658ba84f9d1612049b49ee1bb9a5f7c72c6083b7794f167c5802a6742784dd03c58800872bd5615f06dba1983ad9063eacb7b587ac549dc9070f11f1814c07330a');
INSERT INTO public.history_segments VALUES ('01a2029f-3b18-714c-ae9f-c5df1fe96d08', 1, 4, 4, 1, 1, 'default', '\x28b52ffd607f053d110096e26522306df4c0a32ce655c6e03f46e4f778148c7520010f95769795055ca93df90a0a0ac05c005a005b008f131d5b143ecc7a24940bbea64ad03b683f7a21737dc1bf0943640d9c12504e39a49e19093b93fd47bf43c42f6461eed7fe2ad14d766a77ecdc8ea4699365279d132923dbc9f52891578c502ec6396f2918c71c37b6731f68210b01d0c4ca9feeaa1c62202c2a5425e79ebef23be4ce11cad88ff260a34bc6c5594e3ab9e24b22ab0021631c1c60de5cde64188273abb5151d733bf7b979fab927ba49649df7388f2d0b5ca0b31ca72d8ba1938bb2afbd60c5e3769eebb51ba46ffed18ee9e736e5e91b8736499632063e6d81d4a1df239bd8c4dc449520f79e1c1ebd09c8cef5afdd702c26de641b5c37d9279bb97e4b47c7e0735e936c14316d22491a78ca8f9ea4e7c84123a6aa19af0828f4dd607c0c915560a264ad5b6b8a6b189b12504d4d6708f53e410af6a91faa445f5548f9e49022944252010ed00b76ef8672aa76bbea0766a80335a0a802a5a647b023384b6c51a1cbc2c4c71059a589228e1cde53a34066793a3a9029cc294dce342050222122e2f8d55262da9080f25a7a9ed441de28c052bfb4e7f389411f8df3beac84a4859b2b0b3293e1361bc0767a06eb12c080a728b023b0b04254a0ae7e85042a842e006c278fc681f735ca16512f755a48103c93dc6ee476dc1f2f20daa2a7599f2c010fba13c2ae81628f00872bd5695fc6ed50501d180379c85eac1a4d61c7071811f1814c07330a');
INSERT INTO public.history_segments VALUES ('01a2029f-3bac-744e-89ed-9b93ba047f6f', 0, 0, 4, 1, 1, 'default', '\x28b52ffd607e05ad100046616222206df5e165f673252e9fa8f8fc96f60a4a0003a0a148a8aecd43fde3445d004870105700570057008bec9c4c470913c18752d257b31bbd8eb8aee05f84e1b106ca1258ca72693d2f123622fb8d7e87885fc742dca7fd949a8b6c6daf366e4f545d6465b7d71a2b0c241dd6184ae6e0f21864a9b008bac4714b362e24ad632113cfd58b5f0453fa662c5eaabc1ceaa6cba50582824a9472eefa94df25774e7a36327a532e2d19a44090416e1e63e4b10a2e611ed30c40253a4a84098273ac35d6b8c46ddce707eae7ae7391c7bae829328266f3b4151c4c46cd63b22d8ee3b8b84ebb81fae71b5dd58fdb93eb3f2e2d82ec5364c2408fd9a1df1f9bd844dc04a524f7ae0e8dde8463e3fad366548aca60bac8360d33ad39939796cc5279909d269ecf4451033fb9d1957a9eaa190c8f55688e0319c5691a666160b4a233c47aaf52c45efb8152f3179596d78a8a5811b5021ca015ecde8cd516edf6d50fbc58076b00ae82b5a247b023c0e435cd40af2dc96b90e1b1f099269e2aeffab8375d12454e2b49c3a6839c32204042428850eb0128252d084079496f521de40d05bc64f0f986411f8df3be5642dac2cd2b0b32ca70db1ac0867828ab0f80014f516023b0704254e8ae6685042b843e00bc8debac03dfd7285b449dd40b1e49ae1bdd760e752c8c16104d8b58ccca5a02f6741fc22e03c54480f34a75b42fe37628481d6c031f56b2d719c107011315844c5b3c0a');
INSERT INTO public.history_segments VALUES ('01a2029f-3bb2-7399-a906-6e55d369daaa', 0, 0, 2, 1, 1, 'default', '\x28b52ffd602e00150500b20a23205069db064880bc9fd3de37167a3b504144108135ad455f7b37e30fc3a8aa061889e60785abc0d806d09c13e865fb2dde5b24711137e5697e50e4586b155431443145824c94125a8979f6de82c6bdcc243f89e64e5178e0ecbc13b80f18fd0682bd17eec5253f67f8219c9d15c7fc3c8075db9118d2c10b2dd445aaca8052a150c8401373139ebd2dde400406003c069d1a430ec0e72ac6419529a6836906');
INSERT INTO public.history_segments VALUES ('01a2029f-3bc0-75f9-bc26-38b0902948ef', 0, 0, 4, 1, 1, 'default', '\x28b52ffd6080051d110086226522206df5e165f673252e9f22fd7ccfd20a4a0003a0a148a0edce43fde3445d004870105a0059005a008a0249c8ba2d108bde6b583f949a5fc96ef43ae2ba827f1186c71a284b6029cbe77a5e246c44f61bfd0e11bf8e85b84ffb292517d9da5e6ddc9ea8bac8f6735cd4126c243793cd10e3a435ac81a0c724e812c72dd9b8d15cc7428b5f04727e33163f2b2f8fbae9f2b94050d04929e7ae4ff97dba73f4a0a33427292c21734d71587bad6112f258854471ad6106e08bce8b3041708eb5c61897b88dfbfc44fddc552ef2d866073ae79ef3b415bcc8367618e60e8e49a0a7304da340f8e23aed06ea9f6f74553f6e4baefff85c04d96479eca2eec5a1df1f9bd844dc04a5a67b5787466fc2b171fd69332a4565305d64b96912a4b47b2ca10441ef41769a583e13450dbce44657ea79aae4c472750c8f5570cd250ee34470599ae966456788f55ea744a9f9ecb51f28257fd1b9bc5654c492a815e000ad60f766acb668b7af7ee0c53a58034c5b052b7a043b8204319c3cc891d8798c711262505a1a96c896380c8f65da334d3c55def5593a33204042428850e30379642d08407b233d50ea606f2820a682af1fa6e6575bac69789c4396649201773410b64171ad9616163ca5818fc1c215a2827435574840211402c076fa101df8bec6d922ea52a7ad0b823d92cb8d6e9f43310ba30544d32216b3b296803ddd87b0cb403111e0bc521dedcbb81d0a5207dbc087255bc3dd421d8f7c10265141c8b4c5a3');
INSERT INTO public.history_segments VALUES ('01a2029f-4583-7335-b00c-09f229ff48ee', 0, 0, 3, 1, 1, 'default', '\x28b52ffd60a003950c00f6984b22404bac03b9efbca00e7257bb6802526031b6a42f0ef0f20bfed25dc854c66518ee0d410041004200d3071403c0508c0a19bd0a0687eaade04e34f41708f03db9278d578fb84a876749a3abb313606de35ae7dcd15cf38eb524eed8b792e3790c61bb90c33bd01708016c91c51635fd60b1b5b815b012b834f89002c68eb50e8521ecf0bd8cc3bd1cc5abe9ebacf8208dd3f464c45ebd398e7bcfe3303329d45264057f015f11db570901f08749a15a394a28f887c5e16b4f669010d1d25e2945b99161e7d59725220b69712dce31ea526e6424a50109c968c858a0541a0488094d5a97a3b95da15a7779cf0509d30f92c65ec274a53152ae942a474cc2eee16d16a551dea1bce41dcb49dcd1b4f65683af93176833ad60296a788e1b3553a12bf5189bc7f8b527c15da71f7e082420404263880c3f5b1f000b764abf460e271360e1128220bbda0ae715421700dec6dac5be7c6bdc4590a51ecc482e6f58e91c683b00596c32e364d1c98227d17d089903813c01bafb336c470109f40ffc86f0218e708d717d60f8a9b098b69419');
INSERT INTO public.history_segments VALUES ('01a2029f-3afc-765b-9cf0-2918a55b8765', 2, 5, 3, 1, 2, 'default', '\x28b52ffd603b03550a00a69136205069eb40a906c5289fa45fc96f7fd0b4592d6c5e34b3d8a53e3b5c253333c3092a002b002e008f286bc474ddb226076740aef4d8afe15ebbf4a6fd19ace45a2f1fdaf3ea3a374d9e59dd37d3755fd4010ab51863e960843808b128c1487775a1839662d59ab9a6d8a9238da8a76545be937e4307f5fb36f7894f0abee0cc406cc08cef2fb6123319f0b3493216e4e10c5712c64c6824035dba12f3616667b364b3288993bccfa7a302070d000a4e880fe80f6953f3325b4479b216b76d4a80613841f35ca1193119de82d0cf2c98c511975c80ef3903333601242040c28c31c7aa07cc54220d7b118a29416608549277521aa0c1c0104a12bc9d11603b7da8b83440ab0658576d3059b4a4cccead52039b262fa44c4eb47c35cf888c6d512c5039100b5bbf0a67680c89ee51007b0d3c941b9b09988690d1b6da2dca3516abb610fc24580001');
INSERT INTO public.history_segments VALUES ('01a21ee1-8bfb-7415-be31-1a7b24e176cb', 0, 8, 4, 1, 2, 'default', '\x28b52ffd608d050d0e0036533b224069ec70a1b330edc11a04ad8016cf0fba983ab5237ec9eecc8dd1c0c09b611863022f0030003300eede492aacd895a55e53bc2e716ad0a61fb98211151ef5a7bfc2a045f6beb031cd376d3f4c6c974b50c297f67fd9038fd044cec27532ff8f4ea73930dbf7cdcd10eaa95e2d71bc285e960f8ed36e6aac782db754fb4c2b9ed8464faf9d4b01cc3764d25f5b8907c24baef6bc9f5358bf86cde53291dd0339782027a1f10ff925537239df248ade789d8e2ea0265281e8440189078250cb5a2a5fd9ac1e41b31ad4ad2ed317f4816234170cc8a112d28009a0adcfffd457f0460b34e1a503ba4c87cf437f46a86192c00423c1940273d26240c28821c98e0712a0811483524c43511481613081524660446582a9989a5461b501e16ed30f048dfbcd42a36293dc20fb952de1c79315a2ffef2ec7a0617df5d780ebce9b00c7e4863af8156e9d10632711c66693daa202e2a65a2564b89ad1c631362a550ec14c79c35b0f40054e6310485044dd38396d0044f480bab9e39038d7712b507a6a58248b7450c6cddc63c68be38f6c184d1334ec99421e28c7a36cf84f7125b6511f8811d48738f67a49951bae0a782486d9d5cef83511ab2d6c52fc1501');
INSERT INTO public.history_segments VALUES ('01a2029f-3aac-7543-9f3a-86c1b70b04db', 3, 11, 4, 1, 2, 'default', '\x28b52ffd608d050d0e0066933b224069ec70a1b330edc11a04ad900e3f0fba983ab5237e85e88d9501c181a7a228c0042f0030003300c9dd57920b2bf6c7caa3cbf7a4d5a04d3f7205032a1cea4f7f8541ab56fd986acb62529c74a9c5eed410bab4ffcb1e4ef4084de42c5c67fc7f743acd41298ce5eb7d44776be692664631b37c684ebba9b162b6bca4da8f6bf1a42cf4e456776cb9f3c24b294be28130837071afa8285eceed82eeefb0f57b20070fe424345ee9b70a7ec7653189a0375ea7a30ba889540006890782d865691f57b727df32c1623568af32d317f4816034170cc8a112d28009a04c9fffa9afe08d1668c24c0794990e9f070f46a8610e31c14820358139693140c28821c98e0712a08114835250014551048aa2ca2823348232c1544c4daab0dae1dc26c91047d26f0a1a159de4a6d82f69093f9eac10fdffed72cc14d6577f0db8eebc0970ccdc50858c42ad13310e25c2a86dea485440dc145071196e6774738c8d4aaf43f0ca521c7a0024306acc46024cd44d986304206a0fd89b320e9e7355b702a5a78645b2900e6e9ccc3dc47838dec866d0a441c39a2904817234ca86f81450621bf58118817fa863afef54b9e12acc2763985ded8c5f13b1da4227555f11');
INSERT INTO public.history_segments VALUES ('01a21ee1-8cdb-7469-93be-e24f470a4c46', 0, 0, 4, 1, 2, 'default', '\x28b52ffd608a056d0d00261136215069dc40085dd8f8dea29b74524ed7f50a112f41bbbfd24272a19354839999e10928002e002c009b5453afda6ee515f7dae56ab5564e0a56532057992aee7f46793ffd5b2db566961e7425e9bfae0b9fd1c905143905c315cef39b2807dc891ea1899c85cb08ff9f8c4e737049f7f3e50dd18a592b06b68bda45f7c002b093874bed6b271e08b3f23366310bdfaae6f7ad0d3ea51fc8c10339098df755ac39e60aefff5bcd10b96b04890782604d19b30593442dcf25ba857c208fe28201399281322002a4e6f31ff3155c93066960d624c8253a5c3c0446a88192582013c82545950c0730c28821e98e071260610cc5524c01455104188532c6282350026582a9189b5461b5016171c1043a2db0634ec086faa7c875df9f70259470b22dffbd9a2df3fb3c49a3b6f9c1671cfb7eec86e00afac195fecb1d8970f41da59d26946dc26a0f620b433762a9a51605a227289d31049c4dea5d113dc4a6b08720cbdfef288ecbbcf026dbbbbbb9b3108f257d24298e62246be7dfc05eb049da20c990ff84f5c5878391560936e8de111164d7c1af167bd9486bd52872cd8541e6edb5b535505b9c243cbe02');
INSERT INTO public.history_segments VALUES ('01a21ee1-8cdb-7469-93be-e24f470a4c46', 1, 4, 4, 1, 2, 'default', '\x28b52ffd607d05fd0d00a6923a23308bd601c0a01816c3374eda515ab8db6d149811b1d8c22db792931a25a2232222a0022e003000310089b9b56c1fbdb218b1630f29d179b11525bf37603aa04b63732059c977decd2044cc0da266e9214f1122f5afb603cd7038a35d7f7994c099e715968769b4cef8dfe8649684b773834a6f532cb74e31e26d9236519b788b94426ed33a073f0977ac307fe9f16a8bc8e1ade24d1e1b6b8fed4b5132fcf592450e098dc32c3c5e7a7c9bd4520d42c4e3fd789d8c369c278bc841b1b025c5bb3a455eadad52015da5c9ec066d1c7f66c3e140543a1a300174b5f99ffa0cbd2882229e166832213d0347a8718e988848401596532c1c40c20822e78e0712a08114c352580145610490b102638cd008c60453e154a585d506d95ad6c2fa88e3bd50564c779f9481e2d6e7ff75a4ad8e74dc7d556b72c004d4a3b41a5ed91c162ff876fe224413ac1524c0d335b76c5200d534a77a228c8571033069288879b0373a37e9c0ba30bc342cde6132eacf99fb9e5f44f1bab735abc8ddbced1977a8c411796ec638dff05aee5cb7c32c182dc6308832210a796fcc42b57c21a1f797b870e96839ea632a6b4850535aa4c8af6169c0af0d4b6db148b22d2c');
INSERT INTO public.history_segments VALUES ('01a21ee1-8d18-72f6-b3b0-106cf4c3e0eb', 0, 4, 4, 1, 2, 'default', '\x28b52ffd607e05dd0d00a6d23921406bdcb8650afbd6360df30ebd3ad5c09d129d798c9662bb42f43b9c08c730bc2e2d0030003100ba5af1e24fff944bae174b0f2a6b1b36b72c77c1ca942aa10355b89cbd1fd14dfad44bbd304b6d614bfbbfec01ce68280c57f29928079426fa04266a20cf08ff9d8c0d9370a6fc5b10d6ad60558d1d8271a29c2c2718a7ddd4acdcdd3e0976cee0b37bbb7af1386c7afbaf5ab5a61661b63482a843a51e0704e769141caf1605b5a922ad8b8814777cc626a1270a8bc741d15aebaedf6f0f9fe34d81e4cd243a433a8f1245a8f134e4f2644004484ee73fe62f38930689d8940499c4068f0147a8718e583022812d2ca7583840c20822e78e0712a08114c352580145610490a1c6182330a231c1548c555a586ddd5adac2fa88ab2fac30d3b253ca567153f52f3cd2eb232d2ebfde9c1c330df5355903d79c23c54bc19d1c9635d55a41123c6d73cb9362a6a600551d61208ce77f09858285072343a23607ee60e18e61bf0e93517fce9cb4fc22519c7b51cd57731fb70dd90e8d6e44719b31ce0dbc863bcfed300b468b210c224c8842ce1b7350ed5e48e79d4d52383bae0cf53d7535e4a81151a4956f766858af2d416db149422d2c');
INSERT INTO public.history_segments VALUES ('01a21ee1-8cdb-7469-93be-e24f470a4c46', 2, 8, 3, 1, 2, 'default', '\x28b52ffd60c303f50900f20c281e6087eaa07a50481ff2b56cc9eca3b50110588bca0aa9b3de4598a128160e88e53834462c875ac7cb533be254d57aeac68fed7208281690a0f12e35a57b322b2344efc61b051ac62276a2c013ede69368001cc61f482264b451debfc2283031b4c4b81186b4c36a99b61198169016520d4c4fe65945bacb8fd42655fae75d6aa7edf36fffbd94ae003603c3af55d75394aceca0763ef9143b2e3d3ef99fda01372040c20832aa6c07ad2ab08b1e488481822d02640a455fc3112a34304c848c13501818400a3df88105783bffcc83fa00de459c8e1f4420ea5082dc05ad860094e76014a5b847409b3690fbcdad1d000f7bf088d601273c8cdaa03c9bbd1bf88ac12c2cd042c03108874ec80d3c38e465f46d8059043b3460bb879cd00982ab121e6063e702d6b5d73e0a72830b684bacd62002b545fb93360304');
INSERT INTO public.history_segments VALUES ('01a21ee1-8d60-73fd-8f44-302c9a13ba42', 0, 0, 4, 1, 2, 'default', '\x28b52ffd60960c3d0e00365239224089d601b8005419bd0f1c8d284dd599d7d9d5c4ab273537293722af1e670cc39c092d0030002f00fca07774de7121a767dc9f59956f24de3175f966ea940c8387965a1bf917a5a43bb204c6b412e49025fbbfec02afd2d1c5335d82f112ee0d3c673e42339d855309ff152a9dc6a01e8cb01d733eb04d082185f1827859362c4e761367146fb5c434e4884881bbb15ff8dd986aa59c19c7a81817278e140e960aa82b1e27e1f1b0ddb2085d314add9129f3b9478848e190982fab859cb5d7b02dd23954f1bc29178c07a2f1d10009a0ab8a7fa9df708d16a8c2ad04aa8b84386950ebb548a8714e60829160a882a2c234064082420c29ba3d1260b11806a488028aa20830862630ca182530c608a6626aa20a4b5b1c18ec852910db069330a15cf95b8af552e560ffefca243f40c4e91737dec137c7a8428da4513aab050a3a37ede24613adbf081e4a8431b4a7cc8884e664505536c3e719eb0ff1a4710f81035ad9eb1f48266f6a3c79e6517fd5cc74e044dfbcdd8b0c2231b7b56a5d9271816a688df6f67608527c523ea3854611e58480dc5213a5163bb4900af164d7b14caad70dc3df9e559d224ce5b98c981bf0e91e26cbaf76a994faae7d82da229c647b44');


--
-- Data for Name: idempotency_keys; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.idempotency_keys VALUES ('01a2029f-3b29-7566-a64d-72e9f6deaca4', '2026-11-23 09:38:39.529384+00', 'default', 'once', '\x0bfc29ec2712c6006648723b41eafa07d7bd6898697ca28da2a8ec13ede15c6d');


--
-- Data for Name: limited_tenants; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: removal_turn; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.removal_turn VALUES (1);


--
-- Data for Name: removed_sessions; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: run_events; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_events VALUES ('01a2029f-3b0d-73e1-9092-f280537d78a1', 1, 31, '2026-11-22 09:38:39.512105+00', 1, 1, 'default', '\x28b52ffd606c1ec52900263ca922304df4432da26d0b91a0680ca47ffe1ddb33c4a04158d77d2f7b61d4a62b050581129c00a200a0003f6d43212a4ac6be4118dd3befec75ecd964cff8a65bad29cfdb1fe9fe35b041073aef71f6eb596f46f7ba9d5ad4fd0846d9c64fb5a85cdfc115024151651e7ba310f53a4ab91a6c4b317e5cb128cf3e15a2e6e7eb192f6a741d140a71c9b8dc42b625b6452e04c692eee4b1c5d4a2be41b342547b841336b7227b1226974cfa1b4ce66a5af248b698f7528b9a94a9d155482fea9dfa11c46355b110df3ccd69f0dff1f79b465499055d6b44356d366dc5e8a26b92a6e998b863307196029f6c1aa599ed67d2302613171598bcb63447ce4f7c8bca6a863c1e0f391ad6e9283b3b333ffb5f47210fcfdfb8f6de5c3fe215b222eb308e7f646c1dc8b3cd0e957ea657623ec371274756216b51b8fe83cd4c8e1c95be83e308fb5fc66133568872a8b4e2287bc6383b1a9ff303e4d9ff3228328568e337722a05568b1a80028ba8d2269f6bc6f1303ee531e40f83a9421a1e8a552ce4ba68a9b406f3906eadb5164b36265b6106a6953eb35a076ef6500c9d04522b864531bcbe8e89570c15aa7e2372b8de6f75afbe5e15a258fb5bcacfd74d9bf8592904793bb9c88e4f7cc234dd176d7628722077d233bac19c081c9abfc1c8f43ab6fa79c2f3bf264c1908139f3d433f176ead760cb2362ba4f1c3c7637bde0fbe0ba8575494827c6e750d8f4747d771b58b8ecd7730ef5cfb30d8257ed1ac9b628bb5c70ce4953e4c798b49265f6b2cbe68d009d307537646425ab04ba4dccac3973ee919391154fb5cf66a9d8457532823a74a13be91a5608da5c7a6000cd08c7d2375aaff387dc46b67a483b460a92075622d9940eab4600ac7e95ad94c91b1db6a5ac3d6de646dc58611b666fde3403793e7719ec8056102d95bf0ddc862eafcf408f2880f8113a851b953686644d29424c36641850419c31c647c1260621cc6810c89410c05628410222484182121c41082042243f374284d85c0c0f3949f4223a8b89321366c096aa7c5061e509057bf942b8ad4ef2c89d55ac65e91feb33dfea197c6ee7ccb0b9f7603cb2ead6803785abe6c9dd0fd08db450bbd355d260e1150bd2edd97239b303386ba2ee186677a6f940338747a06fbbd8a7961e3bab80a4ab8ffb34f7480acab6a78e10bd17d173b10ddbffc0c1d9786a9994c5deeb8038f7f97bdaf5cc6d0ea338fe9308e3fcc8707029f6feaf4b9c745184fb59e2dbc910917acc46d9ea656c7ba9ead934acdb989f93c2604e026dd33cfa57ba1b6f8d3800aeca76b6f736bbe0d60cf1e79f90bfc234fed18ae3cdf423390f5f5e5ef0b18e7138a3135bdcd5c0c9abaf1d17bf9d60f4d8b6d6017fe414b4902f587421fa6d6c8574197c213bdf4ab9eef71716d1ba9ac8bdd5875c2b1c40803b81c1f538a5d10e8d85e5074ef63698cd989c1b55ea6dc8729e5826afca53c0c4b093966f01c25718b68f194c96e420d210ead57af9e9c35b803f0617861d4bfde4c3a6c6df15acc50becead323786228c12beecb606defa1c45921b89ee662958d87653a5949a5b4234f9863660d478bfed160bd94974f7be227cf8595ded48bcb34038211006387c20f08e0aac20e16f2d1506802264e3f5f80a9e6eea212d68077095f54324eb752fa72fa2a0d935042c78b8f47902e0177831f5860720e75c7dbd7ab1828c8069690eb73fb1a5e873d28ed361de7d76b84dc35d4d5f981843aa317a10027ea7851c86cb9d13bd4c472e21de8ad2a14eca7abbe4db42e383f752497e19df7021d33ba4aaab1b95379fc22f12d8c4fc6ad8a38fc2d53b32d56b6e297d357ace8bd454dea1944af3de5a3c3923a2015205');
INSERT INTO public.run_events VALUES ('01a2029f-3b29-7566-a64d-72e9f6deaca4', 1, 31, '2026-11-22 09:38:39.542887+00', 1, 1, 'default', '\x28b52ffd60921e952a00e6feaf22304df4432da2fd8b95a07854a46dfe1ddb33c4a04158d7fd9db485519bae1414044aa200aa00a900fd0dc2e87ebef7e3c8b449a6f151c75a539eb33bd2fd6b608313cee7783f73d8a3d13d66b796257d0413359eae65ddfa0ebe90f5384ac91ae4d84ed292c984bfc18432e6ad370b594cbe0899371e3dd6bead58965fa70b59f4afe4d72eea24392814a25464730bd996d816c910ba13e6e435ebb5ac6f3c77214bf1e94f9f23bf614295e7c97b0e26b29b9638b2593bb3b52cfa30759216c2cbfa597f8278bb2a16028da9328eb9d6c86a1a6d1a8bd145d7244dc33171d73099cc9de6df50dabc66c9745426143a98b8163d779a3ff1af29ac34f2783ce46844f37173ad61937d9da17ffda5b99087df6f489124ddfa11bf1036459371fce3da68427ea3eb509fbf8f24419f317dde295a085b96adff105de64e8efabc83db6921103455eb2f318ee8da852c87fa543b5dbfd65e47e3ef7d80fcfa4b8c6551dc077a1a97a65929acaf650d404fa3c64256941df57952718ce3995494b7903b8c7d16d2f0584ac5c2ad0bc8ad3598074bc6185b3086cd6e59867deae3d01a392c63d6fd580cad04542f866531b0e498f8c550b1ea372607c99f6485b1e47521abc167fd2dfe6be65ad3269ed607823c3ab9b8d3275ed947498a12a3ebd034219fea19125e45309ffb0dc67da4269f2b4bffabb20f0361e2af5fe8e982a583a2e82ea4d977e796ad9d5a6901290d95a5a030c7ca64d2518e6e3a5efa260d8f0777774376dcf41dcc4f297218eb12bf8891db6a56627bcb405e1fa7a3ecc68c1bec76d180958062659f6e505d6724a8c5ba84baf059e971d433ae22a8516b77bd465359c9cac3b8aa3eca4a5344015b2b2752011680b9bfa15ad57fab3ee2b133d4815a28aa40b56a06bb0554abc552b85552f49adbc5d7ecd8cbfe8f0f36b3d7fcccacf4bbe77826f0c52669d83079cddc93a6c8ae7fe6539f208ff8c5148111a8513554686644d294140acb1841850419c31c647c1220621806820c08320c05528410223484202121c41082042244c27528da0a35819ebfe4bc2aa6a00a10b3e26f09619426d0362dfb7810895ce553566552cb9912bfd6e7db22e2a37da1d50b3b973fa16e214bfb5c0dc4916d898ccf2371bb6ba2b7b6cb34980424b24b5f7464e0ccb978dc251953e0670f69dd1a7c7b70d0f0183c65153f8b8deb2f7195f06c84bb7e01eabfb11709e54fbd9ae8fb894b7817055bb3e41eedd4741fc1a101c5b68a578bc620f51aff3ef79f7a35d16704cbded479fc8d8b16f44d74b6d017255c6a256cf3a15a3d56d2d99aa3c1cb4d34e7e5b08d9b44cffc2f72176abe79836765d97fb8cde7e9ed8a3d4be5d55fe08f3c5e7538946377142ddb8f42306e4028e630bde8b93464f5ec3bf3a50fcd1b1bb22d00869698000a0f052a66bdf7afc229852774e9273d5f12bd9e4752ad8b01b32aa063c10803f81cef528a1710e248bdbce8dac7728cf9c283eb3e53a68729174155d2a5ac9ca52432668a384a0f14d1f0f49721e7071ded5a10287d0979787047c487313ea3cef56639613b03727743fb3a6865f0d02c8276fb8db71d6a31f34642779b1418b65d7e29a5f3962025bef719b0d0f17de42d1cd783d2957d455cfae8bb5a877881406c3c116c1c9658f5faf8dd261cd7526a00744c1be7c7d7f6b4520f264adb99ac633f2b8d3dfee5c4220a6abc21dac2c3515f2c8071813269ef7d0026ce15d8abe72bbc5630f913e2f64f146e6adcb55b8d997b9f03b7bf71ae0326c88b926523733f44e877cae4d07cee38d13375a410625794147562d6a325c716621f5c964a4c21923d5f918447b497230624bf6b9cac612110ec5bd61c7f55efe8a5f454212b877050cdc14ba90af6d69798a188c84815');
INSERT INTO public.run_events VALUES ('01a2029f-3bb7-710a-baec-eac9e6bce1e3', 1, 31, '2026-11-22 09:38:39.680317+00', 1, 1, 'default', '\x28b52ffd605f1e9d2900d6faa522304df3432d1e6d86745010fe1132e3cf9a61d6498147abe8901eff422d8381812a0199009c009f00489293b16f31caf7f49dc125576d735509eb53ad39e8cb9bf91e32b1451a296c9cbd6a14acf2c1b55e5252fe8825e1c6d7a4a47ddfc113e238cf5d5e3b9390b45894d531c6b1d5fa7585927c7b4d48aabfb36fbdb84f765028283963848bd914d994a910184bd64a20532c29e91b762724b55f4f19f893fa27f49d495cad9844866949339962be545252b5cb7d724296929ede7f205ea78a85cbc964b5159346e785f3d69a4ebde6acfe3fc7e7671acf5dd86c0b49efac4997d0fd9d63e84c7e3d26a9adc5e4b1dd0ffd895f4d4a863c1eef381a98ba18ddf6a5fef6cf34210fdfdfc838e77d3fe213a21e4c17c73fb6c6d4f18db7c3b5bf6d96a8cfa04ef78313a294a4ef3fe0bdecc771ed3bb87eb47f5e1c78eb8424876baf7eb66fadb7a3f17b2b89625bc7329e1f7a29b427250d385f712305967ef5c7f1885f3cd73237dfe278d8a67bed78b3689b90864782ab6261dfc57ab135f6633ea5945aa8d9d85c4933b4bdb6a9173bb47aec91181c12402e31288981ad951d139f182ad2fdc6e3905d2a37d5ca7ee36a18f7ac399d0dc3b489afd73a8ecb39179bfac4236d517652e2edce431da7e819326e4440edfe0663dbdca0235dff2fd2968130f1dbb7f375f1da630ec63b214b7f7cc8b04631a73361010d8fc7926f49b59e7cacbe63799a71b36897f8455c4dc9d51293acbd5e1cbfb661333225279bb035e6a6346831321290a25d026d3d21ccb641cfd888e062ebe0631753a4ad828eb1d1b548e70753a0c61a8c0234007bac8116baff1a7d84cbc540076801172a400e3926801c5234856b94b1724bc9c59692abb1f96e46f777d912c82893cce6c54451369d5272cd59e77b0f3f32f826cc0fd6018119a8513544442322d29424693341850419c31c647c12a06220c7710c883108c551861022248618420821841023109992a703289a0a2703cfd73185466cc53587585f4cd0352d06fb805f5e1ba75c9793fa839458764ba21629415b05d7770e717901d4d262d9d50a70005dcb8bfd1d12884e0bbde55da67427a06613e9e8938adc256c5417c7ccfe0a8ed2d2c1335bf174b1bd3e6e36527806973b9ae5cdc2e9b5a1bfe39d3949d6f4633b3dbd383ebf7e01bfd765e2bddc714f07b750ead541f795fd49dd7229cf0f1d9f3ceee9f870664e6d914970b11694b5555a51e14e45cd4de8d73a1bd0efc6da9236bdab6cbdd54d6fa2999b171b8ac41c6f4676d8b2f3fd4531b9498e5f2bcdee9590fc573c927b37178282efd41915624afb63588c7b9215b3367bf1bbf4d0eb2577ea4b279a77360463008f2db14714240a9c5df4ec6a05288727e0d27f3d1fa76d5d8ea2521703ccaaa68ec5230c48e67897523c00e1c6d79b8a5e3f9641c4cd9b5b9533657c98b22ea8125cca302ca5da314bec287b20a2c5538f974f07f0e915572f27b5de00d1301c66d457dd4c206c6940726228bd4e59993e9a480cc2216f24f4eec1092f3710dded52c0d876454529cd2d59f0fb9267c08242f1d3b180104ff257e0ebfaa906840ef2ae20228e50800beb5b370e4190daeb02cb9d70b996ac019033bb783dbe9aa7b37a0ab3678d6115af47499097ca296b3ca802cec0213eb981738127a87e5000e102671b9ffd007e9ccb663588238eaf31a3b68fc541cb5ff3e11322148443c3b6fa2fff7d22d91660530e3428aa5b13a6b105712274f2ae6267fe38062092948eda4ed70af2abfa812a6f9e93859e83e3520964c5565aceb87edee8c29e4908a92fc097b470dd1d40f5c32da57f8d5ef2222dcdbbed53c9d85b0b92421191912a');
INSERT INTO public.run_events VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 1, 2, '2026-11-22 09:38:42.202984+00', 1, 1, 'default', '\x28b52ffd60fe028d0e00469d541f404bf4fbbaeae80b2992bf22d2365ec29da3e85fd30aaa5a4a97c9300c00044c0049004c00df941153ffa6ff0254a7611806d8524a31004614b11552093096d64a8f29c605fb923c23868823e26a887cc44cb35fa7351f4c343a22219229d64b71c13431aad3305a05fbacee20f8e506825132e60dc2e87c7ab3b7e2a24d2e1a1f75aa35e2f56a443a7f076c70c2f99066ae10f568746f2dc705379e60b05d9c72c15ffdd08c14c5a986df3e1871a3123675aa6d72afdf86823bcab1d360fcf96ba7d26fff5013ffa451a06e307bbe6319a9826ff503fbc63b4c4dfcd0d7b9ed8dc1583ed4a45ee7fbef7d66f17fc69fe1132539ba716665b8cd05072858e572c18a53bb30e205cfb310d3f9186c1342c65c52f188e9900aa619db41ead4f1e44368520ee9d40808534b9bbc337dc189281943cfe30ab3d8f9a46b92904dc6f56d50fff666327afa7d696cd37cf504671431204042e294190f9cc8e055c65491cdd58aa1d6b4a7160496f28b89412f3ff1ec5bb0391504ea0cd1641db0165854bf8338b2fb2573e660b712c55e070321721ac54775003ad7e410ab7c07585aa5d994ad3e396175187bd0433fc512671ab3b16c67c1962f644cc8cc689b8bb2908f03a91dd83ae3c29a882c1305');
INSERT INTO public.run_events VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 3, 11, '2026-11-22 09:38:42.212223+00', 1, 1, 'default', '\x28b52ffd60e808ad1300f6df5d21404bf4b94d2b490a29b21d73649b078a56f277e01403fa6fab5042d31a86e175015400560054009f78326d16af1d7becd4f1b1757c0fe8f1851a081c5b8b62074b1e833ca7061833d63214a658bffe47e24ebd382d6116e23825810674c58d0595c5884c4b0cc731c57ca97e1d6543b3ed84bc7e483f2bfced4541724e57104639a07cc0f29050eb3c08281e3b9e1f8f032a69bdfe5629a6b1592bc63457d8fc81dffb010c75a666f15b6cca3bd71ef3637d12a425298a9a6059d89b6e0883b085a8774b19092532864bb4c5705c5aaf6d585a06151f01329c6b27b75e5ffa091537384354e64e7d1b842ba97422add0558e891ab11c000e4a235e236895f7be8514df8845bfbe98fe930facabb6d88a7d66381d3a559e714ad2942fe5b8967452af151f6906516473bd9de6ccf475bf841f3d4f5ff8c33395085bab65f88a6fa05f8bb1a5d6dfe9ce6b5badfde6ca4e0651b36451f098fe849e0a0f2651cba9d7f7696895d86d8e9d2275a8d7f856d86921d371c51f61a861a573aa024a32525092a4357022a111baf312c09424847208238940492228e2485444228a2412e970121207e40d7c809cd0eb95fef71e0a42f0b9d0b9b1240dde4541a6781cbd321f0f300130003dde66380a6dd06fdba281aa16e52256162295950c2a8802984a01e2aed6f5125b03024c5647cbe9f814111ff47d0e8d3d5fd14c68b8dac0e035ac4094ad3dd09090a1c62152927d80aeed88fd193069ed312190b137e6f5c332f572555edd80d567f32bb5e2d61a2d60a3ba2be6ded87be4f5b19787a12c7f8f4e603532e64f4e174a78ac9a232485771e1f1b1e0bd47f617546b05d28cf6e0df12cda953673d081f94914655544243755');
INSERT INTO public.run_events VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 12, 13, '2026-11-22 09:38:42.215588+00', 1, 1, 'default', '\x28b52ffd60f1003d0700020e2c204067580793d1e7462922d3d5175a815931fe0cb39bba6e9659215c328661181003cfb30ac3d423265f178799471330a50d60c028f4f2e83d196ccd60813685d20873888ea1e73961553ece6cb9b65ec2ce7829f2c6d44ac10419ad7cd38583b31c0979ae8c1c1de9da70a505a22b451c1062636e6db14d46260d15b09bd64a6fd55ebe0f867a7498b816174b8cd7669afc38adf96042a26b2931562d2f7579c4702c4e73b44bbee7d24e41d327040214006512df0c800a3c8cc1f38644df9a70d405bbc91d5bab011c36a06c6e076c18bb15ce4ad59a834176e6783aaf01c31159ea0c');


--
-- Data for Name: run_journal; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_journal VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 1, 1, 1, 'default', '', '\x28b52ffd602d020d0c001657451f6049f405ac3f592df9ae04e8c32f76b0bfa22a226bdbfe536e523c198260f139003d003f0087a11aa5adc66ceddb28e13b7de07e7edfd48ec0cddb57e87726039d119bd6dba7dfe13b95cd466f9d295fc6c89b363682e1a6fbb69f85df28b19f9b329b0e6a5a01670030200697866704c1be1319bc6d3aeb7382ce06b63bf3f1a69b6af4969f237f27366290e60ac6b9d60eb59225518bb29c629230d1ef0b5e970f178fb5200ad244b58e86556138a758819856683f306d871026ddb4461391a55818b2690b908325090b68c64b8aa7ac81d614630a69ab2d0cb5d62d30d82a568b0fb4894193814fbb373d3872df3af4fcbe1ce57a60f0d611d8394887cf8cfdde504253085d32e448432994bafbf69fc4a44f28202042420ca5770e22c5c6eb44f200408de2d3facd8bd610ccac20ca21b86cd0c400d5626db0e36ee6c3c1884009d00db0f70202c2db0f6f1b6014b30cc3be6d700e6f33a7d6fa74cc5e301289f58c00c78ffd17238fe5c6f9de504970987587026e3fcaf1821205', NULL);
INSERT INTO public.run_journal VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 2, 1, 1, 'default', '', '\x28b52ffd6072046d1300a62469215069f4253d6393d572ed248c1ffab2b4a01b15d14d9a75f1cbe4ad3289999910025f0061005d00fbd67ff613292aafa4a6554c39a97357b5015064786940a0d43108ecdb5ff4ffec9f9459a9e0adb782ddfb811f411fd1558b1ccbd1d8b1dab1652492b8182e812846e39083d1b8b61ab3b56fa35ce92dd4efab36766d059fbc6f1b5af89502b311e8c35fb8827ff2bb74e77ddb0eadab96ada697e8166302e470ca6a01edf096e3b935d09ac19891b4d518c67eeecaac3298163a947ea5cf4ec438cc3c3c935e5c724016b3d538e4001d8719b5d3221403802159c45bc4a4d2bd2bb4e8454801dfcf4a4cd294835194d610632d89c548b8a518cc027fb682bfdde1e62d743e58b5e07b95cda4f2658cac3056f97dd5e4f0d36f8e4db96a05acb7efb45f5605b5621f301cad5a05eaf8be753ad267d53a3c703965d33e29e45d2776bcf5d3342d81c25884a2552ca20c84dabdab62ca7debd1f3fb525c5b469488ac44e292261a0b69d8380e8a62b073782aa44388c67eef28a12b941c4d1931bde8833bdcc2a08756083efdbe60b08abd5d749cb22bdd5fb4f454dac0497acbcf91034ca8019961ca2134422481a244cb012042820c5277031240c62086030dd14433947fb65aef36a495ef47b80340abb57a7170a984396a515215a5db2691fa8f4a565a88984d93f9836000561725fe8841c296c0701fab847a8a2a1c872f03c3207776f1f922ad6dd7fe6c37c2e32a3f1a113c27832f5008ae400e2050ba296229b32c3299ff100c19c45ac852be42c3bd79efd56389368e8d97f6f53422460943ca928c6d2481f54bf0fc342660a2412d531504d6c51268e29eb6a734db48a002f89bc6bf6e15', NULL);
INSERT INTO public.run_journal VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 3, 1, 0, 'default', '', '\x7b2274797065223a2263616c6c5f626567756e222c22706c616365223a307d', NULL);
INSERT INTO public.run_journal VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 4, 1, 1, 'default', '', '\x28b52ffd6079027d0e00765d5621404955077a11be90c436c94e43db12fb189cda31769b350ddcb76195770cc3eb024b004c004c00d0ca176f092b2f41da5a631992a83c4373cd6b48f16d0f319276b0b84f35ccf0944b98536c1ba29ac7165b631d3e3a4fc0cbe9b4c430825f2c7866f6895e3c7294bc3ccf3287e728a19f08b370286c194c80215039e05b038c29c350095becf0bd4be4a6dbf585c174861c166f0437017c4b6e399917d3a71738800080e405f005723ab5328d10fc82c4e16b4b86a403dd17a7b3f79198950f5b2b432f0c780447e9d0394174360b5739a3caf4c59480dfdeb8cdd0139149983b18e7186b6a29064519de728a5196967c586eaecf36f08d58ea1e44dc75e94a9dc689710b4743f889a0d334bde00cc32d1623a9a5349925e25a991ea473f82af5765deeb1e5625b86e4254d54ab35ab0ec439b5ef597970ea12cdc85d594260ba382b49e705e41d4f319629134193460bc45d130c08e0032d2030426294ca1e22c5285ad0883e00bc86725aefe6b7143e3c5ce4d52d9d50ad0105723ed0a04500e2b82013c93c003cec38448fbe0c58b8de6a754910a031776587c5461673c71e641d61233c31daa293a35a5e4aa0978810181028ea482e06252e9ea5401fccce4500fec25501365dcf0c', NULL);
INSERT INTO public.run_journal VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 5, 1, 1, 'default', '', '\x28b52ffd60fe0b15190016aa7720404bf479d7425abe7bca5e74e44b41c1b59e2a4c1a61c7ae5a09a61d8661e7026a0072006e00d7117daf3b9c1864069774da1a7d3bb632d12fadcf75cb294a40ee6fd9ef0e2716a4b96271aeb543ad444994f296534b72188a796db5668b21cb199f3aa2fdfb2f27bf4d33909fc19fd625de46e0b4203ffe37feb593e104645ae74f299b134b4758da2d43f6a7e139114a29457014cfad16d00c9814f0ad81d614630a69ab7194feed76e17410716c6a7d5bbf1b68697a719a72e203f1e421c6b19a2d0591c9530ec7bcc3884dd30b278ed8c01d000e081b4036a075deebf66170364830e4fbd41d08619b132962049db4dec4010f74f87948a8b53908f0d34401e4d72105b7713644a7f18a97b0881fa7da273afeb7e1c04090a297947eb842298c5114d2865346b7d5d837d075db8c18f151244563c5f2f738641fb22f6d3fde3e9c3c96823c84916a1d4cabc2704ef5831667704eac807ca927d48f17d14ffbefbcb79b6a39315b8c27f22dd66c055114c907e2c4a0ba44d141c40445d2167b06438ea2c97e8a69ca530e694eb52e0e63354da7286245d35f1f41677b8c4e4e2b6041fe5bfda75d484b429c78a1369721372eab73db6d44b8934e263ef43c5439251c63ce385863de3c4e7c1c4127b4dc6bb6ff364d11f3c6a74aff7aa8a19d420a4d3432a3240569a1033042620839557712a0961c84924a2962c8c844132791cc0442414141ab190344930140136fab40f09d8c8f46021b9413462bdf24b153f00b6b405be21f591c5529b1dc20125d7f4e1d04710e12561e462676907f7336213dca8627f39891be037c95df14c244ed2dfbac920ba199c27092c2cae274692b3667e6e6734fde41140c449f2d25a48037e2c3fd2230b4a96931498034ad9e48d2ab391125fdfc28a7db9fab9778ca5741396c8231140b65eb5694a8cbc2784f5de3de46881fbd599437bde74e5b4f57f09131100b6a0701337e25f1df3c3d8619f4542ac60402594eb052607643b42ede9a0542bea8d099b1031388c18748a45fc704820e8e824ec00ff8f2a3048253fd97053a17f8b66d48f6d1a178ab4ac01eceb4dd7c416296ec1a20d7f7b153593b14e7e0c06df81fcf3dab', NULL);


--
-- Data for Name: run_messages; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: run_queue; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.run_queue VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', 1, 1, '2026-11-22 09:38:57.193596+00', '2026-11-22 09:38:42.189394+00', 1, 0, 1, 1, false, false, 'default', NULL, '01a2029f-3a83-75a8-89b0-5a1791b83dbe', NULL, '\x28b52ffd6080010d0d00d61b5322204dac0322b985e6430b3ee5a1da12c610210890b95fb417b6d8c28009d500c01020450049004b00ea515ffbf7882b1fd97095e2d5e18cb0fcf78e14ba423878bf5234e5d529d4f1ef7776025f3d8f34dfa3646c5ba62d37d7b6d4d0f58bf7d8376a08f96abd4f2a6d6d872f029199f4ea0c953a503ecea4f03254a9c3b49d34b25d6d3f0dcbca0e7c39f26de86aea842835571778a0cf1301675f1a411d19285568fae1ea17f642572b358c23b9abc2bd3a2a95357acb68ec6067625fee0aaf10a60f280980444b5899b8ac50f007d1378ab85f1cdcd7b6d243ebd5154e6c0dd2acc658621cae7146b31c8a015da2309c851d8cd7f12fa63f0d27c3bf3929b432d3344d8b7788236c4c41a0a230770b638d288a4b1a36b3b6dc8ac8b2a26b31391044d178b1b324dd1a0551a0029bc3ac0fe768d1256dad644e1919b46439b70298e239e42d070163c60a1f0051132e6ff0050ac4ddef3e1bbe9000b55d39b35c256060c5e889b2a2bb33b61e0b6d21a1d50208facdf33adb32aef0aa4c2c6366165f4454a418c17608d626418aaaf534942d143735ef2c6531b60a19', 0);
INSERT INTO public.run_queue VALUES ('01a2029f-4e94-70ce-8367-523482b2e12c', 1, 0, NULL, '2026-11-22 09:38:44.500796+00', 0, 0, 1, 1, false, false, 'default', NULL, NULL, NULL, '\x28b52ffd60a3017d0d00261d5622304bac031ab21beb12adba3df7506d893ce77818b067e3d877260f92252e22220a0c49004b004e007fef4813370e0cdeaf144d790382a4f97e6723f08d33c62cd59a83b0a9a375e483bb2d878acc8ec72db518517f8fb2b16d9bb6ec5cdb1243d72fde63dfa821e41bc8fba4d2d66ef8229346b6ab6dc86159b9e1c6d452bdefb52f435fbcf3e5c8b71337a646889203c1d99746898e0b942638ed70e317b642d7bf2bace4348f8cdc35e1de5095ca1a29ae84a4c3558a370ea7c272dc15de38982ee010000887b012713981e0efa16fa4b85f18dcd7b612442b54d861560215861cca6acce19eb61ccc75f2c574a8e164f837278556c666d21b5fa8f4f9fb85127a26859ca8f469da06d3344d8bf70447c6711a2e1519b756b365615ac3e6a5200c12994322a3c4a6184b1446f871ad1567610b5ca0f2f06af52825324d4190f6396554c09c722e094892c7b0e7d4c05a07a2d69bd8371f0051132e6f3ce8213a040b8418f0ca96801812ea31336c9433e6aa06086b47cfaa2b923be3e917b2210859e388642320e8809e3958a39599cee39aa030c434063be1722caa0c9f2467dee73d4571a9e071509e', 0);
INSERT INTO public.run_queue VALUES ('01a2029f-4ea5-7282-8132-ef1b2975cca9', 2, 0, NULL, '2026-11-22 09:38:44.517903+00', 0, 0, 1, 1, false, true, 'default', 'talk', NULL, NULL, '\x28b52ffd607701bd0c00161b5122304bac031ab21beb12adba3df7506d01067f580a18e713f140df3eee485c44441418440046004800ee91bb26dcaba3525923c595907c5ca57875381596efde9126ae0e0cdcaf144d796723f0150449d33d4ac7b675daf2bbb62586ae5fb8c7be5143c857cb7d52696b377c116e4e0aad8ccea4953e77bf5042cfa49013953e4edb4923dbd536f458566ee0cb916f27aea64688d283e0ec4ba34447b94069c26b87ab5fd80a5defaeb0d2731e79f50588ef038c196b190b3bd89dd897bbc2ab83e9020d018068082b11971308ee1efa468afb85c17d6d2b41b45e3d320df3bc8ecd7ada60c86a066b8c3114eec4781a76305ec7bf980e359c0c1fd3344d0bf7042baf89ed25083b6f0d638d304c531a36b365b5159166c5b644e5409064e1c54fa3f4f21884810c5c1e667d3cc7129bb2aca57c4e1915b4446196129024ae21ae3906021e0051132e6ff00901c49ded3a8bbd9000b55d39b35c25806f62f44435d1dd195baf84b66cd06afa874e31462eb614a7d14ae63831e3792f280cb18dc1565850054c65e67d7c8a1030092c15310e0a19', 0);


--
-- Data for Name: runs; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.runs VALUES ('01a2029f-3aaa-7738-ac15-a93ea52f3917', '01a2029f-3aaa-7738-ac15-a93f7b5fcc08', NULL, 59, 52, 0, 0, 0, 111, 0.000163, 2, '2026-11-22 09:38:39.402368+00', '2026-11-22 09:38:39.402368+00', '2026-11-22 09:38:39.404364+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{"user":{"id":"u1"}}', '\x28b52ffd60d100a50900c6154322206decc11273c4cf2fed0cba8234e592280020e8eca419f04bcd5a1711340030e0383700390039008fffd93fa5b8c9fee4f7c89d176e33a46993551c66f9bcb822e32876f229a72c8d8acc4ec9d75663b616ee132d6401aef782dddb612101d1b34f0d31a5a81e41af33529f1ad243a5a4010ea04c67b76b4330a4073ac09ed302754d05b4610afdc1ae93f4cc684406476d0861a1a3ff212cb2725cd3286ec476f426eb1e3386ad253a0aa9fa45564cb64629120ffdbe10b8bee0df8421b2061ee93394a0d03942dfa7486a43af04530a1186c82a30ae294b19780e3a0ebe85d09a624c316db585fb9c78fab9a7b8498435707d7683f48977b0e6e462fdb89fbde0e73165618aa53c564b0d00454b00084e55d44d16db591d600deb85db0c19c6db24326e5564f50c27345ce55c210a', '\x28b52ffd603703950c005698471d5049f44123be7bb47f22d9076dfe709864a6dd2ed0778f74406366a6d73f003e0040007052eb5f8f021b6754f8f0a4f136f011fe90945e7efc4cc26546102cb55124c23962093a6acb3090bb2fa438d5ca53f3e3249ef4b83eb234f360fe5a360c047e247fab1f52d1dd0dd08fafa584f44b2fc18c7f633de8e40ba0433e49dd86f271e9b19d6f40ef711b6646363c7e02b70d1fa6cb27fc587e42173e6ca5f4ea55c36e0d5110f725a54382b95624c51ba2a077d05152948110360c3cb66739bc36c9726dbd64160af9b04053866a02c0add7d6731da0144a0915aa153fbe01852e9a228cc22dd529198ba1d7be9d94b15f0fe9332acb792a5233a8cea1c0a77068d60aa6d87a2b5d795c69ad7fd8c8872bbd2e1b281d2e3ef9b0d1022e209022a99aba03a5c8107d990920926770203031da548815440a229aa84bea6e820e02de4bead99781dd56338f8408047887d61116612f02f51282e2025ccc0040300e3fc31db42063b86423b4c861bafc6a68e070a985c6f21968005aae59c25a96e01c9cb2725812f244938b19ba1d', 34, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3ac5-7660-817b-2dc9fb52a073', '01a2029f-3ac5-7660-817b-2dca95a47706', '01a2029f-3aaa-7738-ac15-a93f7b5fcc08', 125, 51, 0, 0, 0, 176, 0.000227, 2, '2026-11-22 09:38:39.429768+00', '2026-11-22 09:38:39.429768+00', '2026-11-22 09:38:39.431693+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60d000bd090086964523306deb83c830660bbd3c6a16244852788cb8428f54bcf61446f65c6f69cca1a4a018043a003b003b00fd1092ffd93fa1b8cafee4f7c79d176e3fa068955d4d33d30c66619e4c4e32466a1acb4b2f724bb2618af1520bb7f1ecc4025c6f07bbf7c34e04dace2bc1849e678f3a624251fd715ee7a31e4120894a48031c4099ce6ed78e60470f74c031b5b440d56a600a5dc2ae11f4fc80c407476d07616124bccaaa764f35c5626c5692ac382dc57b4901891de955962d8b928ae1da02a2df7702ae3bf8576198ac41632aa06fa93ffaec24287496d0f7e891011386c92a28b7ace6069a0699061b85c0585a2b2998620bf779d1e8e78ee22a13a7165c9fed00fde2236eb126d5ea466b382d2b7262da7b89f9673b020a000d2d62a0aa99b2babd86b594dbb0119071ab22ab6738a1e12ae70a51', '\x28b52ffd6038035d0c0006d8461e5049f34163401d08ff9b86d2c84403609299562afa71e45cd23166667a0d3e003d003d00d4fa57a4c0c619211b9e34dec53dc22392d2cb8d5f49b87c1487a28f979e63e8406f3fe858eb1cced5812c7572d4dcf845831ad73f24cb4494bf9611030189c4babb01baf1b5d4b1494bfaa59760c6bfb11ebc2f70eed874ba0b65938cc676be01bdc85d941919d1f809dc2e6c9826ffb8b1fc4713366ca57437037271d25de2930dafe4ec7008a163484a2f9ab53bf8d063c440639b205e9757281abd54121650ac5b15004cb5826aac03523a089d2375e2c6d791f7b77a8646076b840c858a4648a9a5d06bdf4eaad8af88f41961328c867d285461c153c07438ec19ebac6412063686042bb471acb7d261e34a6b7dc446365ce9f52c209022a99aea01a6c860cf0844c23324758c0fc531639182881245dd00505c4acf9e0decb7a464001a14e01dda227417b64b046f017a2d4171012e67000ed0214ded44025d884b36428bc034f94fbc5f85402d1e96fb4083d572cd966859977370caca6149c8134d2e66e876', 34, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3ad0-75ea-ade5-05cb949e468b', '01a2029f-3ad0-75ea-ade5-05cc95502833', '01a2029f-3aaa-7738-ac15-a93f7b5fcc08', 127, 52, 0, 0, 0, 179, 0.000231, 2, '2026-11-22 09:38:39.440341+00', '2026-11-22 09:38:39.440341+00', '2026-11-22 09:38:39.44196+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60d100ad090096164522306ddc88c830e6556e9acca2f25b24d167a9e156e065edbb8922aecc77062505c5203a003b003c008efe87c7ffd43f515113fd89df257756a8cda02a4d74e95538873d8b02728b790aaf65a659fbb05bd06bacf13285fa480a5980eabd60f77650485076f4493051d2b3570d3151315d8a3e2729bd6a508f84a80c70806c39757b360447799003ef65416eae646c13fa833d2bea99d1880c8ed91182c2bd604df429abb8f7289eb8b0b5f4c38b7b69166bc476b4261ae3bee8300a9778e8778540f505bf260c1135702d05b2d974299fa38484ce11f95e49011186882a308cb38a32f01c741c7c0ca1b5b5bb98c69a427d4e3cfddc55d424b2b085ea5337509f7887b2cd416cfb718fd7b29197e39a6631ff140a00112d62a0aa99b2babd86b5d4dbb0999071ab22ab6738a1e12ae70a51', '\x28b52ffd603803750c00f697461e6049f3009d5ac4a7d9a1e97876cb16247c107c89e13d6f196b368b2008b83d003d003e0092fa4fa4802a5149f66c944a6ddc233c02a5acdbf69984baa90b897962bc5b8cd63f47fecb40fc5ca1e4489cbc79db3ee574dbf987a58908f3952e6220eb606606e0b6954ab7a730a0575909a2f2559907fcbec0b9dbd3a936728f5a6d697c035991da30515944db2770daec59b9fcdbb6f09f5cf62c85d05d0cacf92df65f0684cecb1ddeafef43a2103b0a47edcc40bd8881b674417c36cf58fd905956a00b8c8b02e050ada0dac10129a16ec412a76d5b1d795fa7270206e32828c59aa95edc8a91953e8d92a13f11e851499cebc315d841a59330ec3124982a58ab7e0a3d693be59c8f5065cf4e591d36ee178f7b562d576d042d208022a99aba03a6c8a0cf3844fe19923c069e8e1d2a660191061148d425ba9bb00382f7d27af66e60a7257b23211281be513e565791bc85e8fd04ed02dccc00d0601c32c38ee4d2195b4996d70ec826ff8cf7db1008c5c3721f78b05aae59c25a96e0109c32705812f244938b19ba1d', 34, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3adb-740d-bae9-94d55498230f', '01a2029f-3adb-740d-bae9-94d696d074f5', '01a2029f-3ac5-7660-817b-2dca95a47706', 85, 20, 0, 0, 0, 105, 0.000125, 1, '2026-11-22 09:38:39.451015+00', '2026-11-22 09:38:39.451015+00', '2026-11-22 09:38:39.452395+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'stopped', 'steps_limit_reached', NULL, '{}', '\x28b52ffd60c402ad0c0086da4e2250875607481040f2c308cd4c11640979428443cc98d7567ba2b525372d693333bb0a420045004500f0ede07e7a623a13aacb9471d03db927149fde73bb3ab5eee1f981e8d31f62e322e37290eda9c77b5032698c3ac85514e2b184ed4a0e2f9d3f0ae02b27b6565efc11b5326538f885c7e16b4f5e3412749fbed8f9f4b5fc1886d995ed35e9cfb3b17920a853f4808eeb60a43a08857a9f467c3622ac6844203acd0b453b74912a9927521dc5c003dca00dcf716937b52da62092c55279abdc8aab080ac3a8dd9e9c90cc9cb2386626e47423b2839f7e6062225b7220340ceefa077c4d6c3f19a2472f380400712fc01726e40491213a81738b19a23bd63ccff6d3a84c9b6dac34b92c5616d55a3ca8f618a3a224588db05c0b780a2428f025038ca9b5d4c21276f8de46722fd3f814b964c1d7c9065037ed081f005bf70130e145958da828232e882309f0f0124294594f0b148882e80af0402400ac1118dab4db0b356efe209635aa4eee18f6cc3ab245590c634010318e98adc96c63660b68e6efb5c2cbb01751a823345ce55c210a', '\x28b52ffd609601bd0a00a65541205067ab03416c0426051dcfe38cc86cf9ea3cdccc423b4cbfef72fe613233136a3800380038008c92f8392395dabc3e68244a59efde0a84fa84bd856b13035c0db5e604c15d0c25900d94686a15a7bd3b544e729f9d2c0d8328bad22f0e01297295758051ba2ad30036c1e3f7b3aa36f2e730b853a60b64456aa360942fdc7b8069f373b934bc7b6c28979fd318f93192724f84802a014d31f4be38b8d305e1d9c0c350aaa362b9003b8c742c80663883e1da062885524205b5eaee9511d87572a53f09874abb0bb0ee95caf7736c8804c4c19dfe20129a6157a1358d9c709f72ce46a8f2f3292bc7e6457e0b333f4fdc8d31c60c578b919bd116db96b68d025aeb2568051e007b1008f046800605f69dda8dd8dd30de8de8dd00be8ba07541eece0060c140dc197856ae9d613359968145a06af25f0548b3d0387c066f003ab9e62cd1b42e17825336392c51e489aa5ccc30ed', 20, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3aeb-773c-850d-2eace1dbf162', '01a2029f-3aeb-773c-850d-2ead22f1c661', NULL, 86, 78, 0, 0, 0, 164, 0.000132, 2, '2026-11-22 09:38:39.467253+00', '2026-11-22 09:38:39.467253+00', '2026-11-22 09:38:39.471387+00', 2, 1, 1, 'default', 'editor', '\xc5b61e06d31563c19b9eff5f5986ee352adcb98ba19d85bbc3b014c2c5202a03', 'team/team', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd607b00c5070096d1361f5069f3400668960d6232468b98a8491303075555bb6e57b6d1c7cc9c9919aa2d002f002d00aeb8f3c6ed8285596417750a313eb05aef4cdaf8d097dc3934af73800a294e68e352651b0371bd11ecde06db088db88ee05fc4d0ecc274c2c190475d145710147a4467b01f4c2726c3edcd1c9d286c5cf42b18ffb5bf2e7391fdca1f925b1d8a02de99cbb923bf368225832fbd295b62872982e7b5e6ceac8bf207b317bdc82a6673b1c65ea2e8f70d8da159010753720c00aef85684a8a0d449e93485d4c67d4e683f37331769568bebb509964f7e81a06409511a0900bc0d31aaf217586256efa6c6e05591d5339cd07095738528', '\x28b52ffd602f0a951700c6e66c1f404bf4d8b6cd64150f245f1a691b7fb4bd63d86e6bdab64db9e589740c7326650063005f00f30da4cb2d9eab4fb3c55a7129f3074d35ea8360926d88fb054e9f2d76f1577e36cb164b15c5a5a1344dddb84c43fd1dc380264c826cb14ee338bf711fb150172638117f4cbac4904f86e839d748be2f8440c5ca136fdc991429aef3c7f23006e22bdd06828e3f7d6771c62dd98dd5bbc414c5593797fcddf931517382c86537fa6d20884b1ff90a5fa8b874319826a9ee3cf32dc8fd0a62d981d6ec391600577c2b4216500aa5849c62b571ab1bf3abe309b512330770dc4a1bb945e2a4786d6a01937c4d9c040eca231597874310989c72ea7b3ae8cc9f5262668aa5061be3a658b566f9d973b6b76a86f8971a239a1a973ed5eb6bff4eb6af2db65f27c95e274a9f6eb1cbfb9f2763f58de67b0f29d61a4de32bf3057e3c0e3ad6127caa38120d9a6cb1063287c441254ebd1ca7a69cc9c51c7b6a3d24a773345f6a84248c97ced350e71900160e800421994b7f5112477e32c9c13630bfb49afb71aa52bffa9944ba8f97a4749d38bcd65e2bee7eaea5a59e320d82be6328ce24c873ed504a1e4b1589c31687046486b07a7ba821218448c948052948410a920e7022219139bb011260842404511445218a09a43142428c80080912c84870720bd301fc32786f6188384cd622d30d6333f934cdedcb9429e0c3e00f91e3dbd5f8d2e8442dfd92d9282e83dba81ce9dfeaec54b278bd28e21c3126577d75149a4f57ab0c26dbcec442edb8d4757d24537786f1d08a143724589c2ebb09be96a69da9081dd179402ca1274d718858091853613df00d762b430d7c61e2740dbb8c6c4baad6ae811765604a8b9e9303422c733e209835b0b7b0e9813600873a5ae21c67cf7e56e814d849e28b10108b015837ba2d6e058fd3abc362554e08c1e724b3d92c249dfce7da5020d7d90640f5d1d566054bac2d8bcc5ab438d50ab99660d31a0029fdd39f8fb361b02802cdcdbffdbbce38a14b8c7cb01e8ad219f89aa9b946262dfd810f56a21ed5a8df14', 24, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3afb-713e-babe-c74ae1bc563f', '01a2029f-3afb-713e-babe-c74b42cca784', NULL, 22, 7, 0, 0, 0, 29, 0, 1, '2026-11-22 09:38:39.483667+00', '2026-11-22 09:38:39.483667+00', '2026-11-22 09:38:39.484844+00', 2, 1, 1, 'default', 'keeper', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', 'plain/plain', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd6071005d0700461034214087560773a618e5d7405df73c20b5c586d4a72a40da3a45db6eb5dd196318e64c29002b002900f2bc689ca3bb37957d2ac2155952cb8c4979094c73d99696c814dba52e9f60fe1090afacd85a99f147af8aeda3c37302751800691aa90b3658a7918305c3d805e101c3a583bb71d04db969338fde74bb32b5ee035b98d1c199585925715b30294d59b14757cccda441e768c374c164071fbdbdc47209840fd1e0ae7fc8cfe179c07b892b38426cb2d0645406c6d25a29618a5dbe1791e05e76e6d113997ca54cd034a21d89832e060800940d3156e58159c77b88c1aa22ab6738a1e12ae70a51', '\x28b52ffd609e002508002691352140875807739ceb85bdb288d91890c7e250baafa21cc48650601342234645515c102e0029002a00cfb97e63411f21342b29280a612dec500eb31c0942413918c72187b330c5dc52d7372f2dbddc0414c116b7e719872bc0dd3a8af09da15f859bd1d3e1734fbcfed986a1a747ee793de4e956b6c57ce93b21c7b9b23d0e06eb2830c5ae6fd79a6de97a3e35d440e97b32f3b4b0c735b702beed270754b30bc6314f4a47fcc4987ec28806e2a09f92a5dc27c4413f236609b63dcc0d35c8af9d8c9a44d927420f6086951892c182a801d145013076ac10003901d5de207061a890a4560cd2d4340e9f1e0f4027d79c84312d618580059b7cd2b44254656d866907', 11, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3b03-77e4-99d9-1a28b60fce63', '01a2029f-3b03-77e4-99d9-1a29dbc00c3c', '01a2029f-3afb-713e-babe-c74b42cca784', 423, 21, 0, 0, 0, 444, 0, 1, '2026-11-22 09:38:39.491574+00', '2026-11-22 09:38:39.491574+00', '2026-11-22 09:38:39.492768+00', 2, 1, 1, 'default', 'keeper', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', 'plain/plain', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd607100bd070056d136224087580773a6182540415d07ea17900215ea531520995bac92f5de7289e6288ab9012d002e002c004eadfb784e3cd0d3e763cc314b9ad59c6a163ff55641510d914c3570216b13e4f18cf386407c65c4d6ca8a37028a2d0beefa467c456c3f1da21328c400c7d3474db0c1427d1c241cc536070f181e19dc8b836eca4d9ff9f4a6db351336652a962b15b34451b2d9a68cd8a7bfd6b0b94e2e7d9c2e98cce0a7171c33d9942cd7260a3210aac68a12d1217a005b6ec146802c3e162162584b2589720b598fef5d18ee65683e45ecc557ca044f2fcd704d69705f0800960d31568500661dc92166aa8aac9ee18486ab9c2b4401', '\x28b52ffd609e002d080036d1352140875607739c17d4351926753a623f7b525fc7b0b3f400d2eed2ba62c6300c03022d0029002b0030f13dcf827e2179cc62165e94430ef6183b08ac28c74acb3a124c25e590f4fd8308d9535e9c27b6c95dcf38042c20bbf533233c63cf0a579fa347e89af97dc34f3a479fb2ebf75156c7b42d2a44e71ae5ac4c5be3620872242aa9efdbb5c74d5dd7a3461aa47d57c91c2d43e35ab622426e4807d2e305e398a37ee451a2ec6b0c8806e2b0af5452ca4788c3be3e0c13706ba46ca74509dbd1e7150c89e2663a0f588a218c30606b0d6b590250ea0810003901d5de201010a89aa45601d22c340e9f1e0f4027d79c84312d6185c0049b67d20c4254656d866907', 16, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-419a-7481-9b73-777c5088aa14', '01a2029f-419a-7481-9b73-777d5b029277', NULL, 19, 12, 0, 0, 0, 31, 0, 2, '2026-11-22 09:38:41.178168+00', '2026-11-22 09:38:41.178168+00', '2026-11-22 09:38:42.179863+00', 2, 0, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'slow/slow', 'sync', 'stopped', 'time_limit_reached', NULL, '{}', '\x7b226d65737361676573223a5b5d7d', '\x28b52ffd603203dd0c000618471e5049f34123d03e08f19b1e4963bf101557559d0222044822f81833334f0d3e003d003f00b3b6a7494185121ad8b09cd05ef7089fc4392d33fe25c1b2738aa7f7c2b0d63ac552fc20c458a739328ec153a7869a193f681063facae1ca64795b193110ef2d6d890668c6b64ec70615b1d96909247c0be941bf2f70cdb149f64e368e1857f906d326f62e123282f113b47ad9f0c18c9519c77ff3c0866b8ccdc98726d93082b8465d3884ac553ce4eafb50941fe5861ff48c7514460c30aee690347a5f72c33f2e071650ca4016024006430ae61d90d241e8a8d48919db960485ee564ba5e338bc3bc62bdfdbe552fa56c2af722ef569129b8406e5253754ab954ca2c0a6906857081ded5f633330a693d24f2a64c374da16af8bcd053120702229249407a5cb2052f4a04fd6b587744474f74828f2a00124cd37128b4cd2e69128497537910e00afa4f6ecb381dd563b8f400402bff37a44ed61b647dc1e00f713d40bb30c4025408226f85c36ebfbc530488dc022909a5c2f1e6d8222141a91cfe003d070cd10d668094e012fcb8125449ee8723183b103', 19, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3b0d-73e1-9092-f280537d78a1', '01a2029f-3b0d-73e1-9092-f28173099816', NULL, 58, 50, 0, 0, 0, 108, 0.000158, 2, '2026-11-22 09:38:39.501981+00', '2026-11-22 09:38:39.501981+00', '2026-11-22 09:38:39.512124+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cb009d0900d6d54323208dd6016081a3c97f777e8f68f925388212c0006828b2ad865fc4fb049b2ac000e05c38003a003a000f91ffd93f21b9cafee4f7c79d176e3ba068955dae35e698bb314d721c86d353ada5b6e2929cc714e3a5166ef3ac6401ae3783dddb6125018d5782093dcf1e35c484a4fad3789d8f7af48022ea401ae000ba7476bb360437f440079816e852015d0a3dc2ae11f4ec7848074bed06c242487f3f9bc1ab6ca2295e8c89d82cdda4c8d84b8c4bb4a478c886f42adb5c5ba26a472e1efa7d25709dc1bf0ac3640dfcd1e7468242e7087d8f1e473b1386c92a34f7d66206de02dd029f42602cad95144cb185fbbc68fab923b9cae429e0faec06e8170f894b1317e51ce39898625c2e31c35a922a0b00fd2c62a0aa99b2ba9d86b5aa0d87ec026ff0985c955e3dd7095dae72841005', '\x28b52ffd603703750c00e697461e5049f34163401d08ff9b8e47928906c02433ade8fbc99aacd2195555610d3e003d003e00d4fad7a3c0c61911363c69bccb7b843f24a5971dbf9270f90f887a8afdab87e790523bcb28b053a0833a484b9d1c353b86d120c7f50fc9320fe5af65c44089b6babb01daf1b5f4b1694afaa59760c6bfb11ec02f78fed874ba0b65d390633bdf80dee32eca8c8c70fc046e17364c9387ec583ea4091bb652fa9b0146a1bde8c243297d21543cc391b3050f822c3fad193b8c11038ead490eaf0b5caa402f9584055ab11a2d80a69ca15ceb80940e42a7489dd8f1f503fead1e863654a7a2196a85520abdf6eda48afd7a489f11610653877ee4259330b03124ba59212585de4a471c575aeb1f36b2e14aafcbe5497f894f369c900a2e209022a992ea01a5c8107d9909204279740c9804bc2b52105189ba54771375a0e0bd949e3d33b0dfeae611884080776889d02d6cb7085e03f46a827201ee6600301887cf70e72dc81a2ed9082d02d3e43ff17e1d02b57858ee030f56cb355ba2e5badc8353660e4b449ea8723183b103', 33, 1, 'session', 'talk', true, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3b29-7566-a64d-72e9f6deaca4', '01a2029f-3b29-7566-a64d-72eaba078690', '01a2029f-3b0d-73e1-9092-f28173099816', 122, 50, 0, 0, 0, 172, 0.000222, 2, '2026-11-22 09:38:39.529372+00', '2026-11-22 09:38:39.535316+00', '2026-11-22 09:38:39.542905+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'async', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cc00ad090046164523208dd6016081a3c97f777e0fd4fc121c410960003414bfbf045bc4fb049b2ac000e05c39003b003b00ff10f99ffd1392abec4f7e7fdc79e1b6038a56d9f8dc7209f95e5b3231eec5c418c624b7c4252d1aa6182fb5709d67250b70bd19ecde0e2b09da8d5782093dcf1e35c484a4fad3789d8f7af48022ba8034c00194e9ec766d086ee8810e24b440990a2853e811768da067c7433a586a371016423a0c5e6579b17047c7898ea9249bd32487694c6a0fd9905e657bad9560dd9ce2a1df5702d719fcab304cd660a9802ef5479f1b090a9d23f43d7a16011386c92a348e618936d02cf02db051088ca5b592638a2ddc6785d3cf1dc955264b2db83ebb017ac543e2e2c445bdd75e8b29c6f51237c624a97e760a00fd2c62a0aa99b2ba9d86b592dab0018f71ab22ab6738a1e12ae70a51', '\x28b52ffd6038036d0c00f6d7461e5049f34163402d91fe693310c2fd03609299b6fc927ed25cd23166667a0d3e003d003f00d4baaf48818d33266c78d27897f7088f484a2f37fe43c2e5d78782c8506f799fa7e0712053eca864482739bcdda1e6c6301ad4b8be41592672f86b193110097474770374e36be963839874975e8219ffc67a00bfe0b9c7a6fd2e940d528ded7c037a91bb1c666444e327707661c35479c88de543aab0612ba57b33c9f8e5ad922149e956f2092b962a147a872dc3709c393b8b11038dad82b8ba405514fef2a0b040d10a150ae048cd48ede800f783d059dece8daf43e0dfea020564b0569e50a3c40ef4dab7931eec5744ba1993470815fe6ab94914d81412c6e1c642fe56baa471a5b53e62231baef43ab93ce99ee2261b4eecdb3f2c208022a99ae203a6c880252e444c8925252338b1f184484184137569dd4dd081c07b693d7b37b0d392bd91108100efd016a16bd8dd07ea2504ed025ccc0040300e9d61e772e98cad04cbb2085c93ffc5fb6508f4e2e1b90f38583dd77c89b675b907a7cc1c96883c51e562066307', 33, 1, 'session', 'talk', true, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3ba9-7492-b9a1-8bd739b95686', '01a2029f-3ba9-7492-b9a1-8bd8b9a40e40', NULL, 36, 50, 0, 0, 0, 86, 0.000136, 2, '2026-11-22 09:38:39.657559+00', '2026-11-22 09:38:39.657559+00', '2026-11-22 09:38:39.660022+00', 2, 1, 1, 'default', 'stored', '\x50803335a2c3e85e02633b29a986095c28080e6a58ec56ce21eef879a3137a9e', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cb005d0900e6d44124308bb80140c119f3856697fabad22d51f78942296cb176bbfcd85d530525e4c1c2c00004360037003800b37f527195fdc9ef933b2fdc6e50d52afb16c77513390c62712bb2e8599074ce82186a4b3eb6306696851b4d2b4980ebcd60f75e5849ec55334c2aaa4fd2eb9cd4ab0715514969800328a3b3dbb5195852033d3c25d0a602da147a845d2beab9f1880d8eda526221a4df11f90f4b235f043d8be1072df610ce7a8fd8905e65dbe35c83689e6c0b47bfaf04ae33f857514cb6c0277d960e143a37e87b35496de9756052d30713c5641198e7798d3bbc069f06df92606c31cc726c610bf77911f573577195c9d3c0f5d90ad42f1ec2a4d3201945f7b319bccac6d8b40c0b003f8b38a86afcac0ea461856a6b36bb181b3c2657a557cf754297ab1c214401', '\x28b52ffd603603750c008618481d5049f34163401d08ff9b8e4764a2312aaeaa8aece59756d1cea8aaaa6a3f003e004000b15aec7f8f023ceb44da74b5332ff111fea0d6e67efd4a426e63415448c35dc276923b7894238ce31cae8338859427d4afe534e9f57d982cf5503ee3360c04f2f3f5432310420800bdced8c6364d51cf3613d4f979de03f905d1631ba4f262dbb4d7b8be81cd475e943adbf0fa091c2f6dda262ffb357d6993368d29f54e3c944b3ae7cc70878bd2568e201473271762272ad90e449871601b065e639c1c7e17a90ae59e2a490b30e78c8201b8f5da7a0e052875523a4c21d5afb31f0105d4962312e15ab19462337e5cad82ff1ed4eb445663ac200a87287328b4291c5042c9305c7b4c1d797dedbd7fe0d9a6afcd4e97483d265edb34635ea4d4622b209022b19ae103a5c8107d9947204279740c304924f12e4841441365c9ee26ece0c06b297bf66360afd5cfa3108180ef9c7d705e42505c70cbe0200a86a133e85cae3bc491145901816ff22ff17a0f81583c5cee8207abe49a2bc1aeeed6e0508dc39293276a2e66a076', 33, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-3bb7-710a-baec-eac9e6bce1e3', '01a2029f-3bb7-710a-baec-eacab24d8721', NULL, 58, 50, 0, 0, 0, 108, 0.000158, 2, '2026-11-22 09:38:39.671658+00', '2026-11-22 09:38:39.674774+00', '2026-11-22 09:38:39.680334+00', 2, 1, 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'async', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cc00ed0900d6564623208dd6016081a3c97f777e8f68c125f18d048000d2aad21ac1969a695d44d000c080e33b003d003d0011d2ff10f99ffd1392abec4f7e7fdc79e3b6038a5659a771ac5af31c7e2d39269b049d0493946c5a7220538c97dab88b67250b71bd19ecde0e2b09efd1e368375e0926f43c7bd4101392ea4fe3753eead1038aa803698003e8d2d9edda10dcd0031d704b0b7451015d347a845d23e8d9f1900e96da0d840dabece2e7987b591a0953af449316ad31a91fb221bdcabe054c24da35c31226b69697565b4c721ac543bfaf24ae33f8576198ac813ffadc48d0e81ca1011386c92ab0c5d47303b0c5d72254088ca5b592638a6ddc67c5a29f3b92ab4ca08bebb31ba0573ca4f941c6587b923bc9e626b15a4c627e3683030b00002d62a02a8fb2ba4d1ad6bb3614d28bb1e36372557af55c2774b9ca114214', '\x28b52ffd6037035d0c005698471e5049f34163401d08ff9b8e4764a2312aaeaa3a2542242bce838faaaab0063e003e0040006f52eb5f8f021b6744d8f0a4f12eef11fe90945e6efc4ac265c4962bf8cfdcebf389b903d72ace3bb70ed20a294f881bc36852e3fa2e59e6a1fcb58c18087fab279a218410006a7c2d7d6c7a49bff412ccf837d603f805cf1f1ba4ee42d9746a6ce71bd07bdc459991118d9fc0edc28669f2901bcb873461c3564a0f8557cb5f23ce2d29fdb186ae70cdfcf551a9609cb4527110460c34b60635b6c9e17581cc30faa592b0806ac3280c00bd9ab15aa300a54e4ac7a090e2c6d70f1887660a198c75b7612d855efb7652c57e3da4cf8818b0197bc317ca240e6c0e89c22a1632f45be948e34a6bfdc346365ce975b93ce92ff1c986bd48880b2b209022311bba01a5c8608f4e49288f8e01938077450a222a5197ea6ee20e0ebc97a4673f06765aa237061108f81d5a22acc35e04ea2504c505b8980140c13864863beb5d82912c02dde41fe2fd1e02b17838ee030d56cf352dd1bc2ed7e0948dc312c9134d2e667876', 33, 1, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-458d-76c1-a6ac-c469f31845f7', '01a2029f-458d-76c1-a6ac-c46a05da79d3', NULL, 0, 0, 0, 0, 0, 0, NULL, 0, '2026-11-22 09:38:42.189394+00', '2026-11-22 09:38:42.193596+00', NULL, 2, 0, 0, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'slow/slow', 'async', 'running', NULL, NULL, '{}', '\x7b226d65737361676573223a5b5d7d', '\x5b5d', 0, 1, 'step', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-4e94-70ce-8367-523482b2e12c', '01a2029f-4e94-70ce-8367-52351527d3eb', '01a2029f-3ad0-75ea-ade5-05cc95502833', 0, 0, 0, 0, 0, 0, NULL, 0, '2026-11-22 09:38:44.500796+00', NULL, NULL, 2, 0, 0, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'async', 'queued', NULL, NULL, '{"later":true}', '\x7b226d65737361676573223a5b5d7d', '\x5b5d', 0, 0, 'session', NULL, NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a2029f-4ea5-7282-8132-ef1b2975cca9', '01a2029f-4ea5-7282-8132-ef1c0860a971', '01a2029f-3b29-7566-a64d-72eaba078690', 0, 0, 0, 0, 0, 0, NULL, 0, '2026-11-22 09:38:44.517903+00', NULL, NULL, 2, 0, 0, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'async', 'queued', NULL, NULL, '{}', '\x7b226d65737361676573223a5b5d7d', '\x5b5d', 0, 0, 'session', 'talk', NULL, NULL, NULL);
INSERT INTO public.runs VALUES ('01a21ee1-8afc-77fd-97e1-17fbe74d4ed2', '01a21ee1-8afc-77fd-97e1-17fc1f7bba94', '01a2029f-3b03-77e4-99d9-1a29dbc00c3c', 254, 14, 0, 0, 0, 268, 0, 1, '2026-11-27 21:20:27.388897+00', '2026-11-27 21:20:27.388897+00', '2026-11-27 21:20:27.389271+00', 2, 2, 2, 'default', 'keeper', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', 'plain/plain', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd607100cd0400c2081c1c7069db30013f0955808a7c371308788818b5d0d396e7e534fd7f08010fe1010c3471a93c14150495a340f1fe4ba849428ad6aab690b663b6ec38afc77af37a2182dbfcd53a15c14ef2b9fae3d070c04038468261c5368eb1600a866d5567889794b2d9a945756fd75b7ad59df9b8010c0068cba3673141ce4b3cef855c5621f822de414c00a102838b7b34b67980f2e294af521610', '\x28b52ffd60ba00bd0300a2840f1590c53998c8bb6d299f5dda2622dd5f66f885ff5f4068b86164105a704fe6c92feeb54bfcce1d01a0e412f83a66cbb3ada398c71af1355989b5527eda041100e69403006ba0aa41c2666f0ecadf7a9409bc8e328aacc3f7280e3d9e3894b674a86326817d4103295789a42c01cf0889c7f7ce40', 15, 1, 'session', NULL, NULL, NULL, 'plain/plain');
INSERT INTO public.runs VALUES ('01a21ee1-8bfb-7415-be31-1a6fddc989d2', '01a21ee1-8bfb-7415-be31-1a7002d59a24', '01a2029f-3ac5-7660-817b-2dca95a47706', 196, 50, 0, 0, 0, 246, 0, 2, '2026-11-27 21:20:27.643107+00', '2026-11-27 21:20:27.643107+00', '2026-11-27 21:20:27.643529+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cf00bd0600d20c28215069d40600528d2dd19e5b2341f7bc36c904636b6ba4355ab99f6f743daaaa6a088d8406000226b22931285d5097d403a5977989a2ae4da9cb30fbb00a1f920ddf5aa58e99f798a2a8ac245c096a32e464abb80a567f5ce597c60b7f3bd1071ea8794338d11fc49b620131cea00bb480ef9feef65660e70637683ac1d58f275f1a83db1550c4894593e066fbd0cb208c15e7e536734826750c63d665772a07110000c1fd8207ad10e291ae99b30a032ff1ae6d027c1618a0efe1e48b4a999c2b377203becf35f67957b1cdb39417a75095b2ac', '\x28b52ffd6064035507002248191b70b56d038487fd2f274b6f2bf15dd533a3262229330553555553044540912e4e89b8a75efc214c7386e4a0088081a8b1d4d796db3cea2dbb7732e924e1f29826704edc097f706eb699dfd11d21415258072aa3ebc3f8519b71292bce636a1532afe5ab2f302090229109866a3d9a81037b46a001e7052646f536206fe3534730e73b81ba6bc509ba13a07a0d84af07082800588482617c0dd4c2ea6058bd811a5048683144c382b42cc87ea1fd0d62712756e0ab009f76c0c1c0d6e0638737a010b219184d0c65cc6df195e674a2439ee15fdb0010e820cf8c35cb812d11c033423cbe770302', 33, 1, 'session', NULL, NULL, NULL, 'demo/demo');
INSERT INTO public.runs VALUES ('01a21ee1-8cc7-77d6-8f85-d418049d6ff1', '01a21ee1-8cc7-77d6-8f85-d419483164a1', '01a2029f-3adb-740d-bae9-94d696d074f5', 242, 50, 0, 0, 0, 292, 0, 2, '2026-11-27 21:20:27.847692+00', '2026-11-27 21:20:27.847692+00', '2026-11-27 21:20:27.848008+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cf00cd0600f24c28215069ab0300528d9fd63e63607bf3aa36c90463eb134a63134107b8d1f5a8aaaa218d8406008232c669197891b388ee016faaa6dab3aa922e82479f43acf3a0ad7321e6ec6e9490edd94ef6b46bf85a9f43ac12986801da1f673d127be17f4af38185698f08a5f98278542c18c621738118f0f4e5bdf8a7d0ca0d6ed87482f38fab2391d1f10aa6e9c4a225ba7542ddcb166d72795870a572ccc9adadd4f7743b110000c1fd8207ad10c4db2110ccca06bcc4bbb609f0596080be87932f2a6572aedcc80df83ed7d8e75dc536cf525e9c4255cab202', '\x28b52ffd60650345070042c8191b70b56d038487fd2f274f2b2bf15dd533239d4426371badaaaa8903468061929f0ee25afc5187f21d441b924322008aa49a2b175d5f138b10cdade6914c2260fa0914f815e50adfe067b69d2b673c5b9014d66ae64a3d5726d60c3a909dfdedaac8bc962f5d022e2080229109a6483d9b81037d309a83cf8b27c69e00d527ec794e301dba3a0f5d0858fd0d88bf030414502c42c1389e066361b56060fd811c0064f418a4b730bd0bb25fe0bede79c2827c17f0130e2618780d46d67a130a21ab8191b2130be95e5b7cd29cbe750832fc6b1b40810e32cc58731fd892009e51e2f1bd3510', 33, 1, 'session', NULL, NULL, NULL, 'demo/demo');
INSERT INTO public.runs VALUES ('01a21ee1-8cdb-7469-93be-e243d9b57b52', '01a21ee1-8cdb-7469-93be-e244c614a457', NULL, 59, 52, 0, 0, 0, 111, 0, 2, '2026-11-27 21:20:27.867427+00', '2026-11-27 21:20:27.867427+00', '2026-11-27 21:20:27.867718+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{"ticket":14}', '\x28b52ffd60d100650600b24a2321504bab0300c418f6e75fe34b856855c57024a995682b4b88a03b118f9299190c0109850440026bccd828d83ab44e1781ed513dbcca988d468ad326885263554bb114d742091adccdd7f037d29c6091f033419a2fc9277390882fc80bcc80eb97eef96678c80f5e28a52f18f8eadd44bc7946364f3940e5c1c8ab6342db6afbf491da69acd83922348e76ebbe1400c8cba37f61820b415c550bf02190cb2a04bfc43bb809205a6058df7361e470bea8a0c9b98a233740fc5ca3e8f98d5a0fdb3c4b79710a5529cb0a', '\x28b52ffd6061035d07005288191a80356d03bb46c74ce808f5e9318c69b0ed95de922bbf844c0018454081b657f416331713218668336f380ec600408641e8b66c16957ca399c327d3d82a818dac96c09eb013f7c1beee4a6fcf3b9fe028743aadc7e914cd77f5412ed6dc3a0995baeebb390b2e2070229109a64a3d978103f78c40634708a6e0c474239e6c8a08d6bc4ed0ee585d82ae04a44e03e0fb00010a0016e16014ef0660615530a8ce400c18f2990cd05c88a605192f606fef38b3e09e0be869071e0cbc061b6bbdf98420a6f938f6441bca9bdbe294e674a24392e15fc4000c749063c69ae5c0b604f08c231edf7b0001', 34, 1, 'session', NULL, NULL, NULL, 'demo/demo');
INSERT INTO public.runs VALUES ('01a21ee1-8d0c-704a-8599-884cd0a563a9', '01a21ee1-8d0c-704a-8599-884d8ad103f4', '01a21ee1-8cdb-7469-93be-e244c614a457', 124, 50, 0, 0, 0, 174, 0, 2, '2026-11-27 21:20:27.916285+00', '2026-11-27 21:20:27.916285+00', '2026-11-27 21:20:27.916599+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60ce00d50600428c2722406bdb06106646dbd7dc6311f25d93b66ec298ce26dd64d2ab955cd6f58c619833018d850680823244251f4b13a4496ac252cc44a5485529d66855d2d5c6561223ab5da82c2e6d5a0ebc7a5953430b27e440f303d77cf25ac3dfccf382c6717f08e67983f8532c1cc60fce055ec0f54df77b3334e6083fd60dbe27787af218ed5de13c2db17089e69c6265dd420b610c9911866dd142871686d99dda0213000011fde2005508325511a6435c00c16565835de21ddb04f02c3038dfc3c717153239576de406789f6bc8f3ae629b67292f4ea12a655901', '\x28b52ffd6062032d07002208191a80356d03bb46c74c489b28116018d360bdd24b366d3ea128d21e454061f4066d97e7b74ee710cb6d380e6b002063d142296f3b43d5955e73de4323124ccfd809e4099fb00ff2c48c98e78f82a3a092d33aaa4eada24ace41255b9c04392931a5ec6b0e2e2070229109a66a0f988103f760600e9cfa44d8c4e0c9a68e60cd738277c8aa3c742320f51b00ff07084440b10807a3f81ab8bd6a6050fd811838e47318a0b3109d0b325ec0de1e7206c03d35e8e90e2a18780d32366f16ea9b48150c9804ca9fd1e293e1f4ad4192e15fc4000c749069c69af3c0d604f08c108fef8d80', 33, 1, 'session', NULL, NULL, NULL, 'demo/demo');
INSERT INTO public.runs VALUES ('01a21ee1-8d18-72f6-b3b0-10605cb5137f', '01a21ee1-8d18-72f6-b3b0-1061182c2175', '01a21ee1-8cdb-7469-93be-e244c614a457', 124, 50, 0, 0, 0, 174, 0, 2, '2026-11-27 21:20:27.928323+00', '2026-11-27 21:20:27.928323+00', '2026-11-27 21:20:27.928706+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd60cf00b50600428c262160699b0300d5789b7f4fb76762361affaa0c310cdb5d78b744467bc39f8220c8038d848601612d5d670775041dc91fa86326ead1afba16253d9ebeb8ee60c83429744a92aa2cb6e4d3e6ae551c2b785ac04f23af2dd8cb3c1e689cc40fc13c6e107e8a85c3f0e238e001f86e769f57a13136f021d1044e461f461ea33d2b9ca7251649a225674d297be61425227738d4e50a572a0b7337df0213000091fde2005708325511b6435c00016715065ee25ddb04f82c3040dfc3c917953239576ee4067c9f6becf3ae629b67292f4ea12a655901', '\x28b52ffd6062033507002248191b70b56d038487fd2f274f4d68d35dd5bd518b6cdb9982a9aaaa290245407154f58c5b969759ca3879bd9286e480108084a08407aa3377a9e7e3b4772afb54c2ba989fc09eb813fe606fb6e9f74f415258ead0cc430a51cf76061aa6c7d78c9531afe5235f2e2070229109a66a0f9881032b2f30074e7d226c62f0645347b0e639c1bb635509ba1190fa0d80ff030422a0d881d7507c0dd89a6a3550fd811838e47318a0b3109d0b325ec0dede7166c13d0be8e90e2a18780d32366f16ea9b48150c9804ca9fd1e293e1f4ad4192e15fc4000c749069c69af3c0d604f08c108fef8d80', 33, 1, 'session', NULL, NULL, NULL, 'demo/demo');
INSERT INTO public.runs VALUES ('01a21ee1-8d3b-74d1-8ca0-72837174690c', '01a21ee1-8d3b-74d1-8ca0-728443bfe83d', '01a21ee1-8d0c-704a-8599-884d8ad103f4', 86, 20, 0, 0, 0, 106, 0, 1, '2026-11-27 21:20:27.963219+00', '2026-11-27 21:20:27.963219+00', '2026-11-27 21:20:27.963528+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'stopped', 'steps_limit_reached', NULL, '{}', '\x28b52ffd6061033d0b00028e2b1f5067ec847e5b05f1006d83dccce1e66d32133d6c76411b7fbfda8ccc4ce801cf53cc2780054f9142269a41c86cde91861999b818a4f353161c0f3cc5628f0f57edc92bec2ec5dca02d622ca24b689b54135bc618bfb198dab59ffe29971c83feeebf8fb587ab760c1b7b0a014600889b437412ff7495ba2bf3b6c1f44e3c9211210eb397025fdad12b1305789ccf2833221a49f8df20191582538d3b6989e36dc968e7a470b5f414e4a4ffba1d40a8d18e542041660aeb1486032082629042573c12e0b2043d4955ca098d734e059916d7cf9a010144d8ce961fd5e05f9d582e38296c784cacbce8fba3ea7a9353b30a2332c046463c11e515caa3f56477665f787d6bdbfb36b3d857c2564530dc8fca2b04afc0eeb7ce1ebcaae3820414c6a89f2c02c8f0534801ab5dd84e21b2d7da79501a1fa5732bda8365c4459a61154f34c0e74717e562314806cd003494c78776fe83f0603023d18008d8405c79515195ec49', '\x28b52ffd60ab011506001287161980b76d5ba3330b1822f93c863185ef95fdd632095126e45501c7e130de212405450c8be826df78d799c73d2769a185263a0274630e1178a3dcf00378b3ed5e7ee5978064b0d41a45a9f0f2684537cdeaa025a3d2bc96af2e0124206022110ac4263de17f80400498450818c6bb81b3b02a185667a00608092d437416a469418e17b4dfbbce5e808f027caa830603afc1c7466f4021c862603c319435b7c525cde94d8728c3bf88011c28c8f5f1f51640026b5602497a60b5f57d7cef0a04', 20, 1, 'session', NULL, NULL, NULL, 'demo/demo');
INSERT INTO public.runs VALUES ('01a21ee1-8d60-73fd-8f44-3020052b9818', '01a21ee1-8d60-73fd-8f44-3021e4bd8fa7', NULL, 510, 276, 0, 0, 0, 786, 0, 2, '2026-11-27 21:20:28.000341+00', '2026-11-27 21:20:28.000341+00', '2026-11-27 21:20:28.000702+00', 2, 2, 2, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', 'demo/demo', 'sync', 'completed', 'completed', NULL, '{}', '\x28b52ffd605704cd0600c20b26205049ab0340a8cfedcff1e678da6e41cc400360e5ba9b622db647e31da3aaaa860b85054042627cce31d8bab30e2dc25a8390e13d8bd600232bf958491437f581b9771d660daad88c4e20bdd4bb98cca552e5e08ebee5efa39e0031e1e9c25169a24cc5e5bc000d383aa29bbe13efb8c18d552ff8fac0f98e2a1e7d32eb4314883c6858b0c1d5d2614f324a4966a24ccb1c8ecca06eb42f140000cde0d980d93281558160b88c5c562120327b57470e70728601ae7c007f75d6bfd950991c2937f281efb371cf804dfb7c56d8e6b1ca8b53be4a5940', '\x28b52ffd6066035d070052c8191b80b56903bb46d7c6aa44d20c83614ca191a595bdb9f24bc804800145405178efbabac596cd916dd4985543723808c0819ca3f31ca75ebd21771bc80adf1210d3cc027cc24edc07e575577bbbeeaf794152406d1c43532ac71b5666e2ea84a56c9beb10ba9fb32f209022910986483d9c81037b504c3622f7a942db2402549fb0e73981ba73e509ba10b0fa1b107f070820c0598482713c0dd49aea3560bd811c50c8683148c3c2b42cc87ec17d1b58545af3d4827c15f0d30e3818d81a8cecf02614423663a0e9a68c792c5e094e6f1ae419fed50c00810ef2cc58331dd88e009e31e2f1bd2d10', 109, 1, 'session', NULL, NULL, NULL, 'demo/demo');


--
-- Data for Name: schema_migrations; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.schema_migrations VALUES (1, 'sessions, runs, agents, keys', '2026-11-22 09:38:39.098761+00');
INSERT INTO public.schema_migrations VALUES (2, 'history windows and subagents', '2026-11-22 09:38:39.098761+00');
INSERT INTO public.schema_migrations VALUES (3, 'queue, threads, webhooks, retention', '2026-11-22 09:38:39.098761+00');
INSERT INTO public.schema_migrations VALUES (4, 'limits', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (5, 'known costs and answering models', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (6, 'webhook receivers', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (7, 'removals beside commits', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (8, 'run filters', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (9, 'due deliveries', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (10, 'due deliveries of tenants', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (11, 'rows in place of locks', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (12, 'workspaces', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (13, 'content totals and objects', '2026-11-27 21:20:25.451167+00');
INSERT INTO public.schema_migrations VALUES (14, 'commands for workers', '2026-11-27 21:20:25.451167+00');


--
-- Data for Name: sessions; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.sessions VALUES ('01a2029f-3aaa-7738-ac15-a93f7b5fcc08', NULL, '01a2029f-3aaa-7738-ac15-a93ea52f3917', '01a2029f-3aac-7543-9f3a-86c1b70b04db', 0, 0, 1, 4, '2026-11-22 09:38:39.404364+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x82684b0629f3f2c2d26f04e4bdea0a108dddd0272868c43cd4f6efaf740a8ae4', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', '\xc07cb42f8612809ed05853857522405a314495be2bedb6933401734f3d21aef4', '{"user":{"id":"u1"}}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3ac5-7660-817b-2dca95a47706', '01a2029f-3aaa-7738-ac15-a93f7b5fcc08', '01a2029f-3ac5-7660-817b-2dc9fb52a073', '01a2029f-3aac-7543-9f3a-86c1b70b04db', 1, 1, 2, 8, '2026-11-22 09:38:39.431693+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\xde96596e8193472845c7ba328a7ab3173624cdc1284371c208445226f80c590e', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', '\xaeeeb617b83a6e1befc3b6879220a8e4aa756d7ab05bb3f05ca8014ca64cad35', '{"user":{"id":"u1"}}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3ad0-75ea-ade5-05cc95502833', '01a2029f-3aaa-7738-ac15-a93f7b5fcc08', '01a2029f-3ad0-75ea-ade5-05cb949e468b', '01a2029f-3ad2-7334-9217-c5a44ab34ea1', 0, 1, 2, 8, '2026-11-22 09:38:39.44196+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x8e1aa50488a1e3cce5e40a835e100785074bf2046b82c581c7c4346ec2436315', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', '\x934ac42fb46ba2ab72472464843d4c97cae8658fd65171f8172b29e80a895025', '{"user":{"id":"u1"}}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3adb-740d-bae9-94d696d074f5', '01a2029f-3ac5-7660-817b-2dca95a47706', '01a2029f-3adb-740d-bae9-94d55498230f', '01a2029f-3aac-7543-9f3a-86c1b70b04db', 2, 2, 3, 11, '2026-11-22 09:38:39.452395+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x422d225435556434d0a4f7a4a41a537c71f33e4ad3c8e292dc0ed412826d8723', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', '\xffe28014414242c2655108e6be56dc0c3654482e75ffcdc7cfcb38425a40a53e', '{"user":{"id":"u1"}}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3aeb-773c-850d-2ead22f1c661', NULL, '01a2029f-3aeb-773c-850d-2eace1dbf162', '01a2029f-3aef-718d-a6dc-832cc9c71644', 0, 0, 1, 4, '2026-11-22 09:38:39.471387+00', 1, 'default', 'editor', '\xc5b61e06d31563c19b9eff5f5986ee352adcb98ba19d85bbc3b014c2c5202a03', '\xadaf260cce0c653868594a186908bb2f2ec0386f67378d6acb4a19c10e25e5ce', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x41fcdf40ee730ea9cf322d0c9ba7ced4cf84678ef2d30a9139d49f9695e65d08', '\x1da82632a59230249ec8c02aecbb0b716b2212c068953bcd031afdd8b79348f4', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3aed-7542-888d-7e21784c1787', NULL, '01a2029f-3aeb-773c-850d-2eace1dbf162', '01a2029f-3aef-718d-a6dc-832bd22076b8', 0, 0, 1, 4, '2026-11-22 09:38:39.471387+00', 1, 'default', 'researcher', '\x67f5ab32beeaefb27d11ee218b22f06d7ab9ced89fd5fc03964f5f56cb1b39c0', '\xe7df16ba093cea0feecb2c909372590f20304c97ca51e6e5c6f2cf9549453a30', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x0c002444c7cf57c31680d475479aa7c1945759f8c165c8cb7cd374f7fb884e88', '\x70cd11b0fe3f448bb601c3d78c0906cc7b315e3dba18755999755c5d0918456c', '{}', 0, '01a2029f-3aeb-773c-850d-2ead22f1c661');
INSERT INTO public.sessions VALUES ('01a2029f-3afb-713e-babe-c74b42cca784', NULL, '01a2029f-3afb-713e-babe-c74ae1bc563f', '01a2029f-3afc-765b-9cf0-2918a55b8765', 0, 0, 1, 2, '2026-11-22 09:38:39.484844+00', 1, 'default', 'keeper', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', '\x4abaaaac5996b866c3320d82b12913483fb03764e8c63013a3780e8ec69a490a', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x6aa53a30d27d2602bfe06b75a764380369962c6edad9f1a2292297b9262313dd', '\x693900debe1d5ff7d2652e599a692bae54b37b47b8ca7b93a009c1a7c62907a6', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3b03-77e4-99d9-1a29dbc00c3c', '01a2029f-3afb-713e-babe-c74b42cca784', '01a2029f-3b03-77e4-99d9-1a28b60fce63', '01a2029f-3afc-765b-9cf0-2918a55b8765', 1, 1, 2, 5, '2026-11-22 09:38:39.492768+00', 1, 'default', 'keeper', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', '\xf5edab06a3011895fb784572daa2b5a4d35d791ee183b890fe840f8764675ca4', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x6aa53a30d27d2602bfe06b75a764380369962c6edad9f1a2292297b9262313dd', '\x27bfad8b45ec26a3188e64e91f58ec0f68edceb52835813b3ddc92fdd16d2255', '{}', 2, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3b0d-73e1-9092-f28173099816', NULL, '01a2029f-3b0d-73e1-9092-f280537d78a1', '01a2029f-3b18-714c-ae9f-c5df1fe96d08', 0, 0, 1, 4, '2026-11-22 09:38:39.512124+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x1c920663beae2e315b34c8767d2989eacb491ee8c791b9936e3037f0157595fe', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x37905bfd58135d520b38d2cc95915fa5e4a445b49801ae582bef4601aefdbdff', '\xa7409ec73184acd9f29d5bb308aa50f0cdd01345b1a1706f287caf89e1e75356', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3b29-7566-a64d-72eaba078690', '01a2029f-3b0d-73e1-9092-f28173099816', '01a2029f-3b29-7566-a64d-72e9f6deaca4', '01a2029f-3b18-714c-ae9f-c5df1fe96d08', 1, 1, 2, 8, '2026-11-22 09:38:39.542905+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x04bdbd17828963ceef043e2a71c53f38efe4ba9a2c741c88b0172643ebbd786d', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x37905bfd58135d520b38d2cc95915fa5e4a445b49801ae582bef4601aefdbdff', '\xa1681e2d36d6d590a5283318a658d2c3101108b8962c715dede130e7877eb583', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3ba9-7492-b9a1-8bd8b9a40e40', NULL, '01a2029f-3ba9-7492-b9a1-8bd739b95686', '01a2029f-3bac-744e-89ed-9b93ba047f6f', 0, 0, 1, 4, '2026-11-22 09:38:39.660022+00', 1, 'default', 'stored', '\x50803335a2c3e85e02633b29a986095c28080e6a58ec56ce21eef879a3137a9e', '\x7d2825f3199601006696b85299345c4e5e78bec0f336b1e1a3c22412e8235fe1', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x7c060ea368ff35fa477c6509f5b60c823fa16edb62e3bbb0c3e8887b14178dfa', '\xa9fe4928f24fb239754c5da1ae568da2b404d4ae4f19c044cb8dc1c301cc2534', '{"team":"x"}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3bb2-7399-a906-6e53f4e96724', NULL, NULL, '01a2029f-3bb2-7399-a906-6e55d369daaa', 0, 0, 0, 2, '2026-11-22 09:38:39.666762+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x3989c139714cbfdde259cb84d99249a526ce9ca5444cd8e231de476758778e3f', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x985c927757aedde148d777760dae2f5049864ab5b3bc1cfad5c7e271b9691705', '\xa5bb4f7d942438dbddd9624824847a3bd85101beadac0c66e9f5e518478bf8aa', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-3bb7-710a-baec-eacab24d8721', NULL, '01a2029f-3bb7-710a-baec-eac9e6bce1e3', '01a2029f-3bc0-75f9-bc26-38b0902948ef', 0, 0, 1, 4, '2026-11-22 09:38:39.680334+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\xd65f2f7b1a2c700279e6232748cc861215495f4edd3c6e173aba7c8249dce23d', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\xe71169a42c08ed40963d9442b4af26bb91cd0f02e93fea54dbf20cc94e695639', '\x99187bcff18ec8d154ece939f6f544dc327d5fe5e59d3c4da256a1263e75f86a', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a2029f-419a-7481-9b73-777d5b029277', NULL, '01a2029f-419a-7481-9b73-777c5088aa14', '01a2029f-4583-7335-b00c-09f229ff48ee', 0, 0, 1, 3, '2026-11-22 09:38:42.179863+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x0fc5be999644f9f4d7f7ffd92b559bd728d3e1bea4c2dd609de742714a28ed67', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x11569040577a5ee9918f1419a7f356117200b7e9bebffefdafa7bea4a20155c3', '\xe529624ad7dfc4166eef3cb251ba7e87855017579c4ee3586987c74b8165f4df', '{}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8afc-77fd-97e1-17fc1f7bba94', '01a2029f-3b03-77e4-99d9-1a29dbc00c3c', '01a21ee1-8afc-77fd-97e1-17fbe74d4ed2', '01a2029f-3afc-765b-9cf0-2918a55b8765', 2, 2, 3, 8, '2026-11-27 21:20:27.389271+00', 1, 'default', 'keeper', '\xece48a61c90851f798a57907792f3ff49913f2ca5799613333bae729163887ef', '\x4075c48939b33e9fc0513f5409c9bf968a98c2535e0af6d1c167dee279ddcf3d', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x6aa53a30d27d2602bfe06b75a764380369962c6edad9f1a2292297b9262313dd', '\x46aa9d83f265b9fc144ffb9c494c286e9c5d2b9c77961d998e955808e8463b0b', '{}', 4, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8bfb-7415-be31-1a7002d59a24', '01a2029f-3ac5-7660-817b-2dca95a47706', '01a21ee1-8bfb-7415-be31-1a6fddc989d2', '01a21ee1-8bfb-7415-be31-1a7b24e176cb', 0, 2, 3, 12, '2026-11-27 21:20:27.643529+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x1e68d3615d56659a20579dd46d06fcb4e9fc71ce24826da7fe055d8cf319f417', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', '\xd978f5dbf24da899dc48ce9c0618b14588cd8fe72740d217d923f3a18d2e0927', '{"user":{"id":"u1"}}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8cc7-77d6-8f85-d419483164a1', '01a2029f-3adb-740d-bae9-94d696d074f5', '01a21ee1-8cc7-77d6-8f85-d418049d6ff1', '01a2029f-3aac-7543-9f3a-86c1b70b04db', 3, 3, 4, 15, '2026-11-27 21:20:27.848008+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x1fd069935c77c4854f09aea8db77049ff30446915e3a2715d7171a71a35172bc', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', '\x9eb45e7ad98fbd405f3e13e15833e4f608cc9f35ca8ca573126d1905b60ed6b2', '{"user":{"id":"u1"}}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8cdb-7469-93be-e244c614a457', NULL, '01a21ee1-8cdb-7469-93be-e243d9b57b52', '01a21ee1-8cdb-7469-93be-e24f470a4c46', 0, 0, 1, 4, '2026-11-27 21:20:27.867718+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x21ac1cc13827965b90fe9d28cc92891f1dd88004ccd9defadd488358e7458cf4', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x5b87d4cc0438772c1e604995d924c31bfe00d1daa39824883235997c44ec83d7', '\xd84266e3108a22c32c99c2802f954c61cb813413c5f9dd579305e7cc2ecf3989', '{"ticket":14}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8d0c-704a-8599-884d8ad103f4', '01a21ee1-8cdb-7469-93be-e244c614a457', '01a21ee1-8d0c-704a-8599-884cd0a563a9', '01a21ee1-8cdb-7469-93be-e24f470a4c46', 1, 1, 2, 8, '2026-11-27 21:20:27.916599+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x744ef8f295e29e1f2cf7dc8dbcb0faaa3317f46fec636511fe7362d771560ca5', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x5b87d4cc0438772c1e604995d924c31bfe00d1daa39824883235997c44ec83d7', '\x54a14888ba1321133b5a213a6de88b6790f08276470ede40c16fdd32cf42ff8e', '{"ticket":14}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8d18-72f6-b3b0-1061182c2175', '01a21ee1-8cdb-7469-93be-e244c614a457', '01a21ee1-8d18-72f6-b3b0-10605cb5137f', '01a21ee1-8d18-72f6-b3b0-106cf4c3e0eb', 0, 1, 2, 8, '2026-11-27 21:20:27.928706+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\xb89207f21825afca87ba55fad0c280d1df638ab2e8b00823beecf60be02a8ab2', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x5b87d4cc0438772c1e604995d924c31bfe00d1daa39824883235997c44ec83d7', '\x06022f2aee0ae072bc0dabbd34354d130f266cc9876d069b19e7bb0513cc9699', '{"ticket":14}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8d3b-74d1-8ca0-728443bfe83d', '01a21ee1-8d0c-704a-8599-884d8ad103f4', '01a21ee1-8d3b-74d1-8ca0-72837174690c', '01a21ee1-8cdb-7469-93be-e24f470a4c46', 2, 2, 3, 11, '2026-11-27 21:20:27.963528+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\x770d0221415dfcb46ef13d4feefdd3d4a9fbcc711136ce7e5de3f81cd863e196', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x5b87d4cc0438772c1e604995d924c31bfe00d1daa39824883235997c44ec83d7', '\x83406840f0492c1412e4ae74637800e9e5383594a876ee3d1746eb46ec61a145', '{"ticket":14}', 0, NULL);
INSERT INTO public.sessions VALUES ('01a21ee1-8d60-73fd-8f44-3021e4bd8fa7', NULL, '01a21ee1-8d60-73fd-8f44-3020052b9818', '01a21ee1-8d60-73fd-8f44-302c9a13ba42', 0, 0, 1, 4, '2026-11-27 21:20:28.000702+00', 1, 'default', 'demo', '\x511658d60f0e2af6c7c737b6e59fa1a643305d68d193d18162aece58773e2298', '\xa7373d7bd2dc8da80869dae1853a901d84a4a25524087217581144d9a8e3a549', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', '\x7ce49db078531319b9a825001e5897d98a256dfed7d8259cc930ecabf0b40015', '\x7a9d2341f68b9ecc2b8557d96bd2491298852cec17ddc4dee647b9f0fb987f52', '{}', 0, NULL);


--
-- Data for Name: states; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.states VALUES (1, 1, 'default', '\x0691e9c547cf136e320a70930f01457128c5ca8d1973c6d47e92bbff095b0893', 'context', '\x28b52ffd20ce450500620c271e5067ec418044269f5863cacc9506210e30e32e7ea8829bb22aa6313313428935dcf21d0dbf38ab4ba82e9f998363d8691b5e7b06a821633f7d98d7f4e25059db590f52c089d21d25f6cf676e91d82fe8dfb6ed3cbf88e8122a3d1be9ccf62d760021b0950e23610d612d49006b21a51061a5b56d9f95d7cfed6e8b3dd46230a97e2c6134508e11c20a05c4cc0cc164a5c52a6ddbb728df34012f2202004d219c9d813203', NULL);
INSERT INTO public.states VALUES (1, 0, 'default', '\x96d0fb86e829b3016b5832a605b3dd52c79735babebbe7e66f45b734bd1b419c', 'environment', '\x7b227265736f7572636573223a7b7d2c227661726961626c6573223a7b2263697479223a224265726e227d7d', NULL);
INSERT INTO public.states VALUES (1, 0, 'default', '\x41fcdf40ee730ea9cf322d0c9ba7ced4cf84678ef2d30a9139d49f9695e65d08', 'context', '\x7b226167656e745f6964223a2230316132303239662d336165622d373733632d383530642d326561626464303134623930222c22637265617465645f6174223a22323032362d31312d32325430393a33383a33392e3436373235335a222c22726573706f6e73655f666f726d6174223a7b2274797065223a2274657874227d2c2273797374656d5f70726f6d7074223a22227d', NULL);
INSERT INTO public.states VALUES (1, 0, 'default', '\x7cad6cdc6105470976bb98d659e1b9ba9af86aa1c809c41ecfd784392319f7df', 'environment', '\x7b227265736f7572636573223a7b7d2c227661726961626c6573223a7b7d7d', NULL);
INSERT INTO public.states VALUES (1, 1, 'default', '\x0c002444c7cf57c31680d475479aa7c1945759f8c165c8cb7cd374f7fb884e88', 'context', '\x28b52ffd20ccbd040012cb221e5067e3064194128446c0e884905a154e64c66ecd5489c40243c19899796a897fbd1da23cc710eee5b0bc48bc0bb8bfceeed047204f31305e12c52dfc5e3cd5718c6ced58566c3948583008e1c13ae1b7eec505d2318a70009459c92c9501aa681848d0d4aff7b2c6bdfc0a2f6e1631673ba98cb0a59450cf0061e33568509aba467ebd11b04e78608f080200602328e6598728', NULL);
INSERT INTO public.states VALUES (1, 0, 'default', '\x6aa53a30d27d2602bfe06b75a764380369962c6edad9f1a2292297b9262313dd', 'context', '\x7b226167656e745f6964223a2230316132303239662d336166622d373133652d626162652d633734396338613934373436222c22637265617465645f6174223a22323032362d31312d32325430393a33383a33392e3438333636375a222c22726573706f6e73655f666f726d6174223a7b2274797065223a2274657874227d2c2273797374656d5f70726f6d7074223a22227d', NULL);
INSERT INTO public.states VALUES (1, 1, 'default', '\x37905bfd58135d520b38d2cc95915fa5e4a445b49801ae582bef4601aefdbdff', 'context', '\x28b52ffd20ce4d0500624c271e6047ec013a47a69f38cf42214b599075cca04371c7c8cdd8a542c3305802872da0f22d09af38abcf447d3e2f05b830d426bcb633a0c5941df55922d38a27cadace5a98048d9cde20b2df799c250efb07fdebb69be7d7207d26483bcc6c9cf625b640b54325a338986bcc1d49602da414025869addb6724f6733b5c621f8b8fa5d68c663cf49e6a888d1580607a0c25c74a8b555ab751419e69035e4302004d219c9d813203', NULL);
INSERT INTO public.states VALUES (1, 0, 'default', '\x7c060ea368ff35fa477c6509f5b60c823fa16edb62e3bbb0c3e8887b14178dfa', 'context', '\x7b226167656e745f6964223a2230316132303239662d336261392d373439322d623961312d386264366364666233376632222c22637265617465645f6174223a22323032362d31312d32325430393a33383a33392e3635373535395a222c22726573706f6e73655f666f726d6174223a7b2274797065223a2274657874227d2c2273797374656d5f70726f6d7074223a22596f75206c69766520696e207b7b207661726961626c65732e63697479207c2064656661756c7428274265726e2729207d7d2e227d', NULL);
INSERT INTO public.states VALUES (1, 0, 'default', '\x985c927757aedde148d777760dae2f5049864ab5b3bc1cfad5c7e271b9691705', 'context', '\x7b226167656e745f6964223a2230316132303239662d336262322d373339392d613930362d366535343662316637636236222c22637265617465645f6174223a22323032362d31312d32325430393a33383a33392e3636363736325a222c22726573706f6e73655f666f726d6174223a7b2274797065223a2274657874227d2c2273797374656d5f70726f6d7074223a22227d', NULL);
INSERT INTO public.states VALUES (1, 1, 'default', '\xe71169a42c08ed40963d9442b4af26bb91cd0f02e93fea54dbf20cc94e695639', 'context', '\x28b52ffd20ce450500620c271e6047dd0114470e97fac1a2162f01800a66d081869db04cc64a6149925502072ddcf3fd08ff38a743271d3e430507b1cb267c760cc802be6e72829aa81f7792b39db30005a4075d5a5e7f9ca21207fd827e6ddad2f46a780e9da56304a5d8ae840e2483832147a1182d319ab200761563ead8b5daf47969fab9dd29a1cd89b2bb46e2b8956b66142f862884610ce528bb96d9d2a6cdb37cd404ac8602004d219c9d813203', NULL);
INSERT INTO public.states VALUES (1, 1, 'default', '\x11569040577a5ee9918f1419a7f356117200b7e9bebffefdafa7bea4a20155c3', 'context', '\x28b52ffd20ce4d0500624c271e5067ec41bc4436c14f60c14cb7e4841ca6aa7a81e3118bb72aa63133134289351af30e0bcfc856199fcaf8dd185ad34dbdf0ea33408d08dde9a1718e33f269abcb5643147860948f02fde7616e91d82ff05fb6fe1c7e1150c6a7f874e2335d6eb103088191c5061f0c19b02401288598114125b56cbf15e7df2edb16db8edb4b8b5bd65a68b0960431722cd4091fe8252aa9e6b46c1da3bce304bd8802004d219c9d813203', NULL);
INSERT INTO public.states VALUES (1, 2, 'default', '\x5b87d4cc0438772c1e604995d924c31bfe00d1daa39824883235997c44ec83d7', 'context', '\x28b52ffd20cec503002247181a80b70e10153bd3a1f3fe42c4a09631857f1259131455cf19602007c2ac167f5162832ae14b12bea85c6139b5f295984f08a479cbb3343836f806138133f24ec6f9387c2c039c75579b0f77a73fa80b46fcfa4861a8d1c815612be9fe2fab3d010500a5810b8cc8b1c11787dce0aa2042ed711c2b', NULL);
INSERT INTO public.states VALUES (1, 2, 'default', '\x7ce49db078531319b9a825001e5897d98a256dfed7d8259cc930ecabf0b40015', 'context', '\x28b52ffd20ceb5030022c7171990a70eb0fa5db658a69964c90bb7cbd6a9979db9d28f995908090049eb39e178cb2174edd1b587d8213194d08f876e10206904578860aae0cbfd60bba82a396c281bcb818273370d2b2765fa91e95f2dd9fd27d59722d5a893ebbe8c56030500a5810b8cc8b1c11787dce0aa2042ed711c2b', NULL);


--
-- Data for Name: threads; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.threads VALUES ('01a2029f-3b29-7566-a64d-72eaba078690', 2, '2026-11-22 09:38:39.501981+00', '2026-11-22 09:38:39.542905+00', 'default', 'talk');


--
-- Data for Name: unused_states; Type: TABLE DATA; Schema: public; Owner: -
--



--
-- Data for Name: webhook_deliveries; Type: TABLE DATA; Schema: public; Owner: -
--

INSERT INTO public.webhook_deliveries VALUES ('01a2029f-3bc0-75f9-bc26-38b123ee567c', '01a2029f-3bb7-710a-baec-eac9e6bce1e3', '2026-11-22 09:38:39.680334+00', NULL, NULL, 1, NULL, 1, 1, 'default', 'dead', 'run.completed', 'http://127.0.0.1:9/hook', NULL, NULL, 'it can''t be reached', '\x28b52ffd607504e51400d6a87522304df40329d9b32d04b8eb60c837b912a91f60a0a545bf78d7ad049d4e1811115c026a006a006d000eb1708dbce1c92fb943f382a0495afc36c38bdd4b64733ca6eb73af5f5e0cdd3965a22bb49d516f867573094b1806324779edb56b3cb9799689c9fdddf0e28503c226e38002a784536909ef31e7587cedf1e445d47f3d7a9e1737fe0e2da24a07a4c9f2645f309e2702abfd54794964f295fca1fef2d3427adca1ef74dbedb2a87f79f29dbefff27293ef2f22ff6f87a8d1d26e159319ff400fd376a212e3364f2680bca9112f96ca7b0e9344224ebd5f74d23550718d8c0dd2203c62bb7614c42393c08426343afdbc392d361289ce213cd9060552a5ea3e8a57d2a3ae9d2a433955055c80eb91724a72bfca215aa110d44074ca401d4a401d6a5e465f65eb373451a8a97245828447df763a92e4b0fd37e9a5f16fb79457a3df235bad755e6faa7459784322aeb536d026ffad94976c0eeaafef203dbc9aff63231657d0a61c8d06044dd2649fa08658169e7b4d2a51c2fb41d93276fb71305461ee1086351026cc7fa22ee18d82201e3d69aab0e70ec91c74097398ebd0cfaba1b1185e7aa9ff3e17aa96173b4cec0619e9b4842c3eca30c54112d6284f304ce683fba86f85829ab723d45ffb38ca15af0247a81119438c21a10944429119551b2042a28cb1f3011220f52c88d24c004d303561e5169716eb1bcc0bcc5c23d70e48a100cac6ff454e49dc6ae60d121d4809a23192e55f2f6a4400f3873d9f4e5d827fde4708697611a3b3255c8ed4856245bc0698944ae76592fb5f29279fcead0849309d6cd7114f0103171eeacd9166b2c0d4d2f0ff7bb3656d8cc7513d609673e304971cdce4a020a8b47260dbde60e95040f67d03638eadcbd417c00f0bd5cd5cbdd94ba91a0b94c21ce59a99b9f94a41c66a', NULL);


--
-- Name: agent_versions agent_versions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.agent_versions
    ADD CONSTRAINT agent_versions_pkey PRIMARY KEY (tenant, version);


--
-- Name: agents agents_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant, name);


--
-- Name: api_keys api_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id);


--
-- Name: api_keys api_keys_secret_hash_key; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.api_keys
    ADD CONSTRAINT api_keys_secret_hash_key UNIQUE (secret_hash);


--
-- Name: content_objects content_objects_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.content_objects
    ADD CONSTRAINT content_objects_pkey PRIMARY KEY (tenant, hash, object);


--
-- Name: content_sweeps content_sweeps_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.content_sweeps
    ADD CONSTRAINT content_sweeps_pkey PRIMARY KEY (tenant);


--
-- Name: content_totals content_totals_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.content_totals
    ADD CONSTRAINT content_totals_pkey PRIMARY KEY (tenant);


--
-- Name: contents contents_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.contents
    ADD CONSTRAINT contents_pkey PRIMARY KEY (tenant, hash);


--
-- Name: environment_command_output environment_command_output_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.environment_command_output
    ADD CONSTRAINT environment_command_output_pkey PRIMARY KEY (tenant, command_id, "position");


--
-- Name: environment_commands environment_commands_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.environment_commands
    ADD CONSTRAINT environment_commands_pkey PRIMARY KEY (tenant, command_id);


--
-- Name: history_branches history_branches_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.history_branches
    ADD CONSTRAINT history_branches_pkey PRIMARY KEY (tenant, branch_id);


--
-- Name: history_segments history_segments_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.history_segments
    ADD CONSTRAINT history_segments_pkey PRIMARY KEY (tenant, branch_id, "position");


--
-- Name: idempotency_keys idempotency_keys_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.idempotency_keys
    ADD CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant, key);


--
-- Name: limited_tenants limited_tenants_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.limited_tenants
    ADD CONSTRAINT limited_tenants_pkey PRIMARY KEY (tenant);


--
-- Name: removal_turn removal_turn_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.removal_turn
    ADD CONSTRAINT removal_turn_pkey PRIMARY KEY (turn);


--
-- Name: removed_sessions removed_sessions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.removed_sessions
    ADD CONSTRAINT removed_sessions_pkey PRIMARY KEY (tenant, session_id);


--
-- Name: unused_states removed_states_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.unused_states
    ADD CONSTRAINT removed_states_pkey PRIMARY KEY (tenant, hash);


--
-- Name: run_events run_events_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_events
    ADD CONSTRAINT run_events_pkey PRIMARY KEY (tenant, run_id, first_sequence);


--
-- Name: run_journal run_journal_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_journal
    ADD CONSTRAINT run_journal_pkey PRIMARY KEY (tenant, run_id, sequence);


--
-- Name: run_messages run_messages_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_messages
    ADD CONSTRAINT run_messages_pkey PRIMARY KEY (tenant, run_id, message_key);


--
-- Name: run_queue run_queue_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.run_queue
    ADD CONSTRAINT run_queue_pkey PRIMARY KEY (tenant, run_id);


--
-- Name: runs runs_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (tenant, run_id);


--
-- Name: schema_migrations schema_migrations_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.schema_migrations
    ADD CONSTRAINT schema_migrations_pkey PRIMARY KEY (version);


--
-- Name: sessions sessions_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant, session_id);


--
-- Name: states states_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.states
    ADD CONSTRAINT states_pkey PRIMARY KEY (tenant, hash);


--
-- Name: threads threads_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.threads
    ADD CONSTRAINT threads_pkey PRIMARY KEY (tenant, name);


--
-- Name: webhook_deliveries webhook_deliveries_pkey; Type: CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.webhook_deliveries
    ADD CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (tenant, delivery_id);


--
-- Name: content_objects_by_time; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX content_objects_by_time ON public.content_objects USING btree (is_removable, recorded_at);


--
-- Name: contents_in_objects; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX contents_in_objects ON public.contents USING btree (tenant) WHERE (encoding >= 64);


--
-- Name: environment_commands_by_awaited; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX environment_commands_by_awaited ON public.environment_commands USING btree (awaited_until);


--
-- Name: environment_commands_running; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX environment_commands_running ON public.environment_commands USING btree (tenant) WHERE ((worker IS NOT NULL) AND (outcome IS NULL));


--
-- Name: environment_commands_waiting; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX environment_commands_waiting ON public.environment_commands USING btree (command_id) WHERE (worker IS NULL);


--
-- Name: idempotency_keys_by_expiry; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX idempotency_keys_by_expiry ON public.idempotency_keys USING btree (expires_at);


--
-- Name: removed_sessions_by_parent; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX removed_sessions_by_parent ON public.removed_sessions USING btree (tenant, parent_session_id) WHERE (parent_session_id IS NOT NULL);


--
-- Name: removed_sessions_by_stage; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX removed_sessions_by_stage ON public.removed_sessions USING btree (stage) WHERE (stage <> 1);


--
-- Name: run_events_by_age; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_events_by_age ON public.run_events USING btree (created_at);


--
-- Name: run_journal_by_tree; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_journal_by_tree ON public.run_journal USING btree (tenant) WHERE (tree IS NOT NULL);


--
-- Name: run_messages_by_age; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_messages_by_age ON public.run_messages USING btree (received_at);


--
-- Name: run_queue_active; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX run_queue_active ON public.run_queue USING btree (tenant, thread) WHERE ((thread IS NOT NULL) AND moves_thread AND (NOT is_held));


--
-- Name: run_queue_by_lease; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_queue_by_lease ON public.run_queue USING btree (leased_until) WHERE (leased_until IS NOT NULL);


--
-- Name: run_queue_by_priority; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_queue_by_priority ON public.run_queue USING btree (tenant, level, priority DESC, run_id) WHERE ((leased_until IS NULL) AND ((NOT is_held) OR (control = 'cancel'::text)));


--
-- Name: run_queue_by_turn; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_queue_by_turn ON public.run_queue USING btree (level DESC, turn, run_id) WHERE ((leased_until IS NULL) AND ((NOT is_held) OR (control = 'cancel'::text)));


--
-- Name: run_queue_of_tenant; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_queue_of_tenant ON public.run_queue USING btree (tenant, level, turn) WHERE (leased_until IS NULL);


--
-- Name: run_queue_of_thread; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX run_queue_of_thread ON public.run_queue USING btree (tenant, thread, run_id) WHERE (thread IS NOT NULL);


--
-- Name: runs_by_agent; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_agent ON public.runs USING btree (tenant, agent, run_id);


--
-- Name: runs_by_base; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_base ON public.runs USING btree (tenant, base_session_id, run_id) WHERE (base_session_id IS NOT NULL);


--
-- Name: runs_by_metadata; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_metadata ON public.runs USING gin (((metadata)::jsonb) jsonb_path_ops) WHERE (metadata <> '{}'::text);


--
-- Name: runs_by_model; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_model ON public.runs USING btree (tenant, model, run_id);


--
-- Name: runs_by_session; Type: INDEX; Schema: public; Owner: -
--

CREATE UNIQUE INDEX runs_by_session ON public.runs USING btree (tenant, session_id);


--
-- Name: runs_by_status; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_status ON public.runs USING btree (tenant, status, run_id) WHERE (status <> 'completed'::text);


--
-- Name: runs_by_thread; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_by_thread ON public.runs USING btree (tenant, thread, run_id) WHERE (thread IS NOT NULL);


--
-- Name: runs_without_session; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX runs_without_session ON public.runs USING btree (completed_at) WHERE (status = ANY (ARRAY['failed'::text, 'cancelled'::text]));


--
-- Name: sessions_by_age; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_age ON public.sessions USING btree (created_at);


--
-- Name: sessions_by_agent; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_agent ON public.sessions USING btree (tenant, agent, session_id);


--
-- Name: sessions_by_context; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_context ON public.sessions USING btree (tenant, context_hash);


--
-- Name: sessions_by_environment; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_environment ON public.sessions USING btree (tenant, environment_hash);


--
-- Name: sessions_by_metadata; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_metadata ON public.sessions USING gin (((metadata)::jsonb) jsonb_path_ops) WHERE (metadata <> '{}'::text);


--
-- Name: sessions_by_parent; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_parent ON public.sessions USING btree (tenant, parent_session_id) WHERE (parent_session_id IS NOT NULL);


--
-- Name: sessions_by_subagent; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX sessions_by_subagent ON public.sessions USING btree (tenant, subagent_of, session_id) WHERE (subagent_of IS NOT NULL);


--
-- Name: states_by_tree; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX states_by_tree ON public.states USING btree (tenant, tree) WHERE ((kind = 'environment'::text) AND (tree IS NOT NULL));


--
-- Name: threads_by_session; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX threads_by_session ON public.threads USING btree (tenant, session_id) WHERE (session_id IS NOT NULL);


--
-- Name: webhook_deliveries_by_age; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhook_deliveries_by_age ON public.webhook_deliveries USING btree (created_at) WHERE (status <> 'pending'::text);


--
-- Name: webhook_deliveries_by_due; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhook_deliveries_by_due ON public.webhook_deliveries USING btree (due_at) WHERE (status = 'pending'::text);


--
-- Name: webhook_deliveries_by_run; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhook_deliveries_by_run ON public.webhook_deliveries USING btree (tenant, run_id, delivery_id);


--
-- Name: webhook_deliveries_by_tenant; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhook_deliveries_by_tenant ON public.webhook_deliveries USING btree (tenant, COALESCE(receiver, ''::text), due_at) WHERE (status = 'pending'::text);


--
-- Name: webhook_deliveries_dead; Type: INDEX; Schema: public; Owner: -
--

CREATE INDEX webhook_deliveries_dead ON public.webhook_deliveries USING btree (tenant, delivery_id) WHERE (status = 'dead'::text);


--
-- Name: agent_versions agent_versions_are_immutable; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER agent_versions_are_immutable BEFORE UPDATE ON public.agent_versions FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_update();


--
-- Name: contents contents_are_immutable; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER contents_are_immutable BEFORE UPDATE OF size, kind, schema_version, encoding, tenant, hash, payload ON public.contents FOR EACH ROW EXECUTE FUNCTION public.refuse_update();


--
-- Name: contents contents_give_up_their_objects; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER contents_give_up_their_objects AFTER DELETE ON public.contents FOR EACH ROW WHEN ((old.encoding >= 64)) EXECUTE FUNCTION public.give_up_content_object();


--
-- Name: contents contents_take_their_objects; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER contents_take_their_objects AFTER INSERT ON public.contents FOR EACH ROW WHEN ((new.encoding >= 64)) EXECUTE FUNCTION public.take_content_object();


--
-- Name: history_branches history_branches_are_immutable; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER history_branches_are_immutable BEFORE UPDATE ON public.history_branches FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_update();


--
-- Name: history_segments history_segments_are_immutable; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER history_segments_are_immutable BEFORE UPDATE ON public.history_segments FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_update();


--
-- Name: contents new_contents_are_counted; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER new_contents_are_counted AFTER INSERT ON public.contents REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.count_new_contents();


--
-- Name: contents removed_contents_are_counted; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER removed_contents_are_counted AFTER DELETE ON public.contents REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION public.count_removed_contents();


--
-- Name: sessions sessions_are_immutable; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER sessions_are_immutable BEFORE UPDATE ON public.sessions FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_update();


--
-- Name: states states_are_immutable; Type: TRIGGER; Schema: public; Owner: -
--

CREATE TRIGGER states_are_immutable BEFORE UPDATE ON public.states FOR EACH ROW EXECUTE FUNCTION public.refuse_update();


--
-- Name: environment_command_output environment_command_output_tenant_command_id_fkey; Type: FK CONSTRAINT; Schema: public; Owner: -
--

ALTER TABLE ONLY public.environment_command_output
    ADD CONSTRAINT environment_command_output_tenant_command_id_fkey FOREIGN KEY (tenant, command_id) REFERENCES public.environment_commands(tenant, command_id) ON DELETE CASCADE;


--
-- PostgreSQL database dump complete
--


