# shellcheck shell=bash
# Private PostgreSQL and Redis servers for one command, on free loopback ports,
# with their data in a temporary folder, and what tests check us with: a Python
# and a Node.js with their libraries. Sourced by the scripts beside it; must not touch a server
# it did not start.
#
# The entry points are servers_run COMMAND [ARGUMENT...], and servers_lend for a
# command that starts and stops the servers by itself.

# shellcheck source=packages.sh
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

# The oldest PostgreSQL that the service supports.
readonly SERVERS_POSTGRES_MAJOR=15
# Each test has a database, and so a pool, of its own.
readonly SERVERS_POSTGRES_CONNECTIONS=400
# Tests decide when tables are analyzed and vacuumed: a worker that does so by itself changes plans
# in the middle of a test, holds snapshots, and uses the database that is copied for each test. No
# test crashes the machine, and a busy disk takes longer to sync than a statement may take.
readonly SERVERS_POSTGRES_TEST_OPTIONS=(-c autovacuum=off -c fsync=off)
# Servers take ports below the range from which the kernel picks client ports.
readonly SERVERS_PORT_FIRST=15000 SERVERS_PORT_COUNT=15000
readonly SERVERS_START_ATTEMPTS=8
readonly SERVERS_START_SECONDS=60
readonly SERVERS_STOP_SECONDS=20
SERVERS_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
readonly SERVERS_ROOT
# The libraries that tests have Python and Node.js import, with their versions.
readonly SERVERS_PYTHON_LIBRARIES=$SERVERS_ROOT/tests/python.txt
readonly SERVERS_NODE_LIBRARIES=$SERVERS_ROOT/tests/node
# Clients of the Model Context Protocol by others, and a Node.js that is new enough for them.
readonly SERVERS_MCP_LIBRARIES=$SERVERS_ROOT/tests/node-mcp
# A pooler before PostgreSQL, from the source of Debian 13: the package of Debian 12 is too old to
# have prepared statements in transaction mode.
readonly SERVERS_PGBOUNCER_SOURCE=https://deb.debian.org/debian/pool/main/p/pgbouncer/pgbouncer_1.24.1.orig.tar.gz
readonly SERVERS_PGBOUNCER_SHA256=da72a3aba13072876d055a3e58dd4aba4a5de4ed6148e73033185245598fd3e0
# Servers of the Model Context Protocol by others.
readonly SERVERS_MCP_SERVERS=$SERVERS_ROOT/tests/mcp-servers
# Clients of OpenAI's API.
readonly SERVERS_OPENAI_CLIENTS=$SERVERS_ROOT/tests/openai-clients
# An identity provider.
readonly SERVERS_OIDC=$SERVERS_ROOT/tests/oidc
# Checks of the console, and of pages of others.
readonly SERVERS_CONSOLE_CHECKS=$SERVERS_ROOT/tests/console
readonly SERVERS_FACE_CHECKS=$SERVERS_ROOT/tests/faces

SERVERS_DIR=
SERVERS_POSTGRES_PID=
SERVERS_REDIS_PID=
SERVERS_COMMAND_PID=
# Words put before a server's command line; set by servers_prepare_folder.
SERVERS_AS_USER=()

# Runs a command while both servers are up and returns its exit status. The
# command finds them in AGENT_RUNTIME_TEST_POSTGRES_URL (a superuser on the
# maintenance database) and AGENT_RUNTIME_TEST_REDIS_URL, the Python in
# AGENT_RUNTIME_TEST_PYTHON, the libraries of Node.js in
# AGENT_RUNTIME_TEST_NODE_MODULES, the pooler in AGENT_RUNTIME_TEST_PGBOUNCER and
# the programs of Prometheus in the folder AGENT_RUNTIME_TEST_PROMETHEUS, unless
# they can't be had or no tests are run: only those set
# AGENT_RUNTIME_TEST_REQUIRE_SERVERS.
servers_run() {
    servers_prepare
    if [[ -n ${AGENT_RUNTIME_TEST_REQUIRE_SERVERS-} ]]; then
        servers_prepare_python
        servers_prepare_node
        servers_prepare_pgbouncer
        servers_prepare_prometheus
    fi
    servers_start_postgres
    servers_start_redis
    servers_command "$@"
}

# Runs a command that starts servers by itself, with three options more that
# say where and how; removes the folder when it ends.
servers_lend() {
    servers_prepare
    servers_command "$@" --folder "$SERVERS_DIR" --postgres-bin "$(servers_postgres_bin)" \
        --launch "${SERVERS_AS_USER[*]}"
}

servers_prepare() {
    trap servers_stop EXIT
    trap 'servers_interrupt 129' HUP
    trap 'servers_interrupt 130' INT
    trap 'servers_interrupt 143' TERM

    servers_install_missing
    servers_raise_open_files
    servers_prepare_folder
}

servers_command() {
    # A background job is awaited by a builtin that signals interrupt; bash
    # makes such a job ignore SIGINT, which env undoes.
    local status=0
    env --default-signal=INT,QUIT -- "$@" <&0 &
    SERVERS_COMMAND_PID=$!
    wait "$SERVERS_COMMAND_PID" || status=$?
    SERVERS_COMMAND_PID=
    return "$status"
}

# --- what the machine must have

servers_install_missing() {
    local packages=()
    servers_postgres_bin >/dev/null || packages+=(postgresql)
    command -v redis-server >/dev/null || packages+=(redis-server)
    # Tests of TLS make their certificates with it.
    command -v openssl >/dev/null || packages+=(openssl)
    # The documents' commands are run as they stand, with these.
    command -v curl >/dev/null || packages+=(curl)
    command -v sqlite3 >/dev/null || packages+=(sqlite3)
    command -v setpriv >/dev/null || packages+=(util-linux)
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || packages+=(python3-venv)
    # The pooler is built with these. Tests build programs with them, too.
    command -v make >/dev/null || packages+=(make)
    command -v cc >/dev/null || packages+=(gcc libc6-dev)
    command -v git >/dev/null || packages+=(git)
    [[ -e /usr/include/event2/event.h ]] || packages+=(libevent-dev)
    [[ -e /usr/include/openssl/ssl.h ]] || packages+=(libssl-dev)
    command -v pkg-config >/dev/null || packages+=(pkg-config)
    [[ ${#packages[@]} -gt 0 ]] || return 0

    servers_say "installing ${packages[*]}"
    packages_install "${packages[@]}" || servers_fail "not all of these packages are installed: ${packages[*]}"
    servers_postgres_bin >/dev/null ||
        servers_fail "PostgreSQL $SERVERS_POSTGRES_MAJOR or newer is needed; this release's package is older"
}

# Prints the folder of the newest PostgreSQL programs that are new enough.
# Debian keeps them off PATH, in a folder for each major version.
servers_postgres_bin() {
    local bin major newest='' newest_major=$((SERVERS_POSTGRES_MAJOR - 1))
    for bin in /usr/lib/postgresql/*/bin; do
        major=${bin#/usr/lib/postgresql/}
        major=${major%/bin}
        if [[ $major =~ ^[0-9]+$ && $major -gt $newest_major && -x $bin/initdb && -x $bin/postgres ]]; then
            newest=$bin newest_major=$major
        fi
    done
    if [[ -z $newest ]] && bin=$(command -v initdb) && [[ $("$bin" --version) =~ \ ([0-9]+) ]] &&
        [[ ${BASH_REMATCH[1]} -gt $newest_major ]]; then
        newest=$(dirname "$(readlink -f "$bin")")
    fi
    [[ -n $newest ]] && printf '%s\n' "$newest"
}

# Makes a virtual environment with the libraries, once for a list of them. What
# needs it fails or is left out without it, as the suite is told.
servers_prepare_python() {
    local target=${CARGO_TARGET_DIR:-$SERVERS_ROOT/target}
    if servers_install_python_libraries "$SERVERS_PYTHON_LIBRARIES" "$target/test-python"; then
        export AGENT_RUNTIME_TEST_PYTHON=$target/test-python/bin/python
    fi
    if servers_install_python_libraries "$SERVERS_MCP_SERVERS/python.txt" "$target/test-mcp-servers-python"; then
        export AGENT_RUNTIME_TEST_MCP_SERVERS_PYTHON=$target/test-mcp-servers-python
    fi
    if servers_install_python_libraries "$SERVERS_OPENAI_CLIENTS/python.txt" "$target/test-openai-clients-python"; then
        export AGENT_RUNTIME_TEST_OPENAI_CLIENTS_PYTHON=$target/test-openai-clients-python/bin/python
    fi
}

# Installs the libraries of a file into an environment, unless they are there.
servers_install_python_libraries() {
    local libraries=$1 folder=$2
    if cmp -s "$libraries" "$folder/requirements.txt" && [[ -x $folder/bin/python ]]; then
        return 0
    fi
    servers_say "installing the Python libraries of ${libraries#"$SERVERS_ROOT/"}"
    if ! python3 -m venv --clear "$folder" >&2 ||
        ! "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
            --requirement "$libraries" >&2; then
        servers_say "the Python libraries of ${libraries#"$SERVERS_ROOT/"} can't be installed"
        return 1
    fi
    # Last, so that a half-made environment is made again.
    cp "$libraries" "$folder/requirements.txt"
}

# Does the same for Node.js, which is not installed for this: without npm the
# tests with its libraries are left out.
servers_prepare_node() {
    local target=${CARGO_TARGET_DIR:-$SERVERS_ROOT/target}
    if ! command -v npm >/dev/null; then
        servers_say "LEFT OUT: tests with Node.js (npm is not installed)"
        return 0
    fi
    if servers_install_node_libraries "$SERVERS_NODE_LIBRARIES" "$target/test-node"; then
        export AGENT_RUNTIME_TEST_NODE_MODULES=$target/test-node/node_modules
    fi
    if servers_install_node_libraries "$SERVERS_MCP_LIBRARIES" "$target/test-node-mcp"; then
        export AGENT_RUNTIME_TEST_MCP_MODULES=$target/test-node-mcp/node_modules
    fi
    if servers_install_node_libraries "$SERVERS_MCP_SERVERS" "$target/test-mcp-servers-node"; then
        export AGENT_RUNTIME_TEST_MCP_SERVERS_NODE=$target/test-mcp-servers-node/node_modules
    fi
    if servers_install_node_libraries "$SERVERS_OPENAI_CLIENTS" "$target/test-openai-clients-node"; then
        export AGENT_RUNTIME_TEST_OPENAI_CLIENTS_NODE=$target/test-openai-clients-node/node_modules
    fi
    if servers_install_node_libraries "$SERVERS_OIDC" "$target/test-oidc"; then
        export AGENT_RUNTIME_TEST_OIDC_NODE=$target/test-oidc/node_modules
    fi
    servers_prepare_console
    if servers_install_node_libraries "$SERVERS_FACE_CHECKS" "$target/faces"; then
        export AGENT_RUNTIME_TEST_FACES_NODE=$target/faces/node_modules
    fi
}

# Prepares the browser for the checks of the console, and their libraries.
servers_prepare_console() {
    local folder=${CARGO_TARGET_DIR:-$SERVERS_ROOT/target}/console
    if ! command -v chromium >/dev/null; then
        servers_say "installing chromium"
        packages_install chromium || servers_say "chromium can't be installed"
    fi
    if command -v chromium >/dev/null; then
        AGENT_RUNTIME_TEST_CHROMIUM=$(command -v chromium)
        export AGENT_RUNTIME_TEST_CHROMIUM
    fi
    if servers_install_node_libraries "$SERVERS_CONSOLE_CHECKS" "$folder"; then
        export AGENT_RUNTIME_TEST_CONSOLE_NODE=$folder/node_modules
    fi
}

# Installs the libraries of a folder into another one, unless they are there.
servers_install_node_libraries() {
    local libraries=$1 folder=$2
    if cmp -s "$libraries/package-lock.json" "$folder/installed.json"; then
        return 0
    fi
    servers_say "installing the Node.js libraries of ${libraries#"$SERVERS_ROOT/"}"
    rm -rf -- "$folder"
    mkdir -p "$folder"
    cp "$libraries"/package*.json "$folder"
    if ! npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error >&2; then
        servers_say "the Node.js libraries of ${libraries#"$SERVERS_ROOT/"} can't be installed"
        return 1
    fi
    cp "$folder/package-lock.json" "$folder/installed.json"
}

# Builds the pooler, once for a release of it.
servers_prepare_pgbouncer() {
    local folder=${CARGO_TARGET_DIR:-$SERVERS_ROOT/target}/test-pgbouncer
    local program=$folder/$SERVERS_PGBOUNCER_SHA256/pgbouncer
    if [[ ! -x $program ]]; then
        servers_say "building PgBouncer"
        servers_build_pgbouncer "$folder" "${program%/*}" || servers_say "PgBouncer can't be built"
    fi
    if [[ -x $program ]]; then
        export AGENT_RUNTIME_TEST_PGBOUNCER=$program
    fi
}

servers_build_pgbouncer() {
    local folder=$1 target=$2
    rm -rf -- "$folder"
    mkdir -p "$folder/source"
    curl -sSfL --retry 3 -o "$folder/source.tar.gz" "$SERVERS_PGBOUNCER_SOURCE" &&
        sha256sum --check --quiet <<<"$SERVERS_PGBOUNCER_SHA256  $folder/source.tar.gz" >&2 &&
        tar -xf "$folder/source.tar.gz" -C "$folder/source" --strip-components 1 &&
        (cd "$folder/source" && ./configure --without-cares && make pgbouncer) >"$folder/build.log" 2>&1 &&
        mkdir "$target" &&
        mv "$folder/source/pgbouncer" "$target"
}

# Unpacks Debian's Prometheus, which then starts no daemon.
servers_prepare_prometheus() {
    local folder=${CARGO_TARGET_DIR:-$SERVERS_ROOT/target}/test-prometheus
    if [[ ! -x $folder/usr/bin/promtool ]]; then
        servers_say "unpacking Prometheus"
        rm -rf -- "$folder"
        mkdir -p "$folder"
        if ! packages_unpack prometheus "$folder"; then
            servers_say "Prometheus can't be unpacked"
            return 0
        fi
    fi
    export AGENT_RUNTIME_TEST_PROMETHEUS=$folder/usr/bin
}

# A suite that opens many sockets in one process outgrows Debian's soft limit of 1024.
servers_raise_open_files() {
    local soft
    soft=$(ulimit -Sn)
    if [[ $soft != unlimited && $soft -lt 16384 ]]; then
        ulimit -Sn 16384 2>/dev/null || ulimit -Sn "$(ulimit -Hn)" 2>/dev/null || true
    fi
}

# --- start

# Makes the temporary folder. /var/tmp, unlike /tmp, is on a disk on every
# Debian release, so that a benchmark's fsync means something.
servers_prepare_folder() {
    SERVERS_DIR=$(mktemp -d "${TMPDIR:-/var/tmp}/agent-runtime-servers.XXXXXXXX")
    # setsid keeps a terminal's Ctrl-C from the servers until the command is
    # gone; the parent-death signal stops them even if this shell is killed.
    local launch=(setsid setpriv --pdeathsig INT)
    if [[ $EUID -eq 0 ]]; then
        # PostgreSQL refuses to run as root.
        id postgres >/dev/null 2>&1 || servers_fail "the user postgres, under which root starts the servers, is missing"
        chown postgres: "$SERVERS_DIR"
        launch+=(--reuid postgres --regid postgres --init-groups)
    fi
    launch+=(--)
    SERVERS_AS_USER=("${launch[@]}")
    "${SERVERS_AS_USER[@]}" test -w "$SERVERS_DIR" ||
        servers_fail "the user of the servers can't write to $SERVERS_DIR; set TMPDIR to another folder"
}

servers_start_postgres() {
    local bin data=$SERVERS_DIR/postgres log=$SERVERS_DIR/postgres.log password port attempt options=()
    bin=$(servers_postgres_bin)
    password=$(servers_password)
    # Passwords keep other users of this machine out. MD5 is enough for that; with
    # SCRAM, PostgreSQL computes thousands of hashes for each connection.
    servers_write_secret "$SERVERS_DIR/postgres.password" "$password"
    (cd "$SERVERS_DIR" && "${SERVERS_AS_USER[@]}" "$bin/initdb" --pgdata="$data" \
        --username=postgres --pwfile="$SERVERS_DIR/postgres.password" --auth=md5 \
        --encoding=UTF8 --locale=C --no-sync) >"$log" 2>&1 ||
        servers_fail_with_log "initdb failed" "$log"

    if [[ -n ${AGENT_RUNTIME_TEST_REQUIRE_SERVERS-} ]]; then
        options=("${SERVERS_POSTGRES_TEST_OPTIONS[@]}")
    fi
    for ((attempt = 0; attempt < SERVERS_START_ATTEMPTS; attempt++)); do
        port=$(servers_free_port)
        # What is not named here stays at its default: fsync and
        # synchronous_commit are on for benchmarks.
        "${SERVERS_AS_USER[@]}" "$bin/postgres" -D "$data" -p "$port" \
            -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
            -c max_connections="$SERVERS_POSTGRES_CONNECTIONS" -c timezone=UTC "${options[@]}" \
            </dev/null >"$log" 2>&1 &
        SERVERS_POSTGRES_PID=$!
        if servers_await "$SERVERS_POSTGRES_PID" servers_postgres_is_ready "$data"; then
            export AGENT_RUNTIME_TEST_POSTGRES_URL="postgres://postgres:$password@127.0.0.1:$port/postgres"
            servers_say "$("$bin/postgres" --version) on port $port, process $SERVERS_POSTGRES_PID"
            return
        fi
        servers_end SERVERS_POSTGRES_PID QUIT
        grep -q 'Address already in use' "$log" || break
    done
    servers_fail_with_log "PostgreSQL did not start" "$log"
}

servers_start_redis() {
    local conf=$SERVERS_DIR/redis.conf log=$SERVERS_DIR/redis.log password port attempt
    password=$(servers_password)
    for ((attempt = 0; attempt < SERVERS_START_ATTEMPTS; attempt++)); do
        port=$(servers_free_port)
        servers_write_secret "$conf" "bind 127.0.0.1
port $port
requirepass $password
dir $SERVERS_DIR
daemonize no
save \"\"
appendonly no"
        "${SERVERS_AS_USER[@]}" redis-server "$conf" </dev/null >"$log" 2>&1 &
        SERVERS_REDIS_PID=$!
        if servers_await "$SERVERS_REDIS_PID" servers_redis_is_ready "$log"; then
            export AGENT_RUNTIME_TEST_REDIS_URL="redis://default:$password@127.0.0.1:$port/"
            servers_say "$(redis-server --version | cut -d' ' -f1-3) on port $port, process $SERVERS_REDIS_PID"
            return
        fi
        servers_end SERVERS_REDIS_PID TERM
        grep -q 'Address already in use' "$log" || break
    done
    servers_fail_with_log "Redis did not start" "$log"
}

# The servers' own word is what counts: a reply on the port could come from
# another process that took it first.
servers_postgres_is_ready() {
    grep -q '^ready' "$1/postmaster.pid" 2>/dev/null
}

servers_redis_is_ready() {
    grep -q 'Ready to accept connections' "$1" 2>/dev/null
}

# Waits until CHECK succeeds; fails when the process ends or time runs out.
servers_await() {
    local pid=$1 deadline=$((SECONDS + SERVERS_START_SECONDS))
    shift
    until "$@"; do
        if ! kill -0 "$pid" 2>/dev/null || [[ $SECONDS -ge $deadline ]]; then
            return 1
        fi
        sleep 0.05
    done
}

servers_free_port() {
    local port
    while :; do
        port=$((SERVERS_PORT_FIRST + SRANDOM % SERVERS_PORT_COUNT))
        # A connection that succeeds means that somebody listens there.
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            printf '%s\n' "$port"
            return
        fi
    done
}

servers_password() {
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n'
}

# Writes a file that only the user of the servers can read.
servers_write_secret() {
    (umask 077 && printf '%s\n' "$2" >"$1")
    if [[ $EUID -eq 0 ]]; then
        chown postgres: "$1"
    fi
}

# --- stop

# Ends the command with all that it started, then leaves through the exit trap.
servers_interrupt() {
    trap '' HUP INT TERM
    if [[ -n $SERVERS_COMMAND_PID ]]; then
        local tree=() deadline=$((SECONDS + SERVERS_STOP_SECONDS))
        mapfile -t tree < <(servers_tree "$SERVERS_COMMAND_PID")
        kill -TERM "${tree[@]}" 2>/dev/null || true
        while kill -0 "${tree[@]}" 2>/dev/null && [[ $SECONDS -lt $deadline ]]; do
            sleep 0.05
        done
        kill -KILL "${tree[@]}" 2>/dev/null || true
    fi
    exit "$1"
}

# Prints a process id and those of its descendants.
servers_tree() {
    local children=() child
    printf '%s\n' "$1"
    read -r -d '' -a children < <(cat "/proc/$1/task/"*/children 2>/dev/null) || true
    for child in "${children[@]}"; do
        servers_tree "$child"
    done
}

# Stops both servers and removes their folder; the trap of every exit.
servers_stop() {
    local status=$?
    trap '' HUP INT TERM
    set +e
    # SIGINT asks PostgreSQL for a fast shutdown: it drops its clients.
    servers_end SERVERS_POSTGRES_PID INT
    servers_end SERVERS_REDIS_PID TERM
    if [[ -n $SERVERS_DIR ]]; then
        rm -rf -- "$SERVERS_DIR"
    fi
    exit "$status"
}

# Ends the server whose process id stands in variable NAME, and clears it.
servers_end() {
    local -n pid=$1
    local signal=$2 deadline=$((SECONDS + SERVERS_STOP_SECONDS))
    [[ -n $pid ]] || return 0
    kill "-$signal" "$pid" 2>/dev/null
    while kill -0 "$pid" 2>/dev/null; do
        if [[ $SECONDS -ge $deadline ]]; then
            servers_say "process $pid outlived SIG$signal; killing it"
            kill -KILL "$pid" 2>/dev/null
            break
        fi
        sleep 0.05
    done
    wait "$pid" 2>/dev/null
    pid=
    return 0
}

# --- messages

servers_say() {
    printf 'servers: %s\n' "$1" >&2
}

servers_fail() {
    servers_say "$1"
    exit 1
}

servers_fail_with_log() {
    servers_say "$1; the end of its log:"
    tail -n 20 "$2" >&2
    exit 1
}
