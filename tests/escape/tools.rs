//! The programs that agents use work in the sandbox.

use std::path::Path;

use super::harness::Area;

async fn works(script: &str, expected: &str) {
    let area = Area::new();
    let mut spec = area.bash(&format!("set -e\n{script}"));
    spec.limits.memory_bytes = 2 << 30;
    area.prints(spec, expected).await;
}

#[tokio::test]
async fn shells() {
    works(
        "cat <(echo a) <(echo b) | tr '\\n' ' '; echo c > /dev/null; echo d | cat - > e; cat e",
        "a b d",
    )
    .await;
    works(
        "cat <<< here; f=$(mktemp); echo x > $f; cat $f; [ -w $TMPDIR ] && [ -w $HOME ]; cd ~; touch a; ls",
        "here\nx\na",
    )
    .await;
    works("timeout 0.1 sleep 10 || echo $?", "124").await;
}

#[tokio::test]
async fn shells_control_jobs() {
    // Needs signals, which are denied on old kernels.
    let area = Area::new();
    let script = "sleep 100 & kill $!; wait $! || echo $?";
    let ran = area.run(&area.sandbox().await, area.bash(script)).await;
    assert_eq!(ran.stdout, "143\n", "{}", ran.stderr);
}

#[tokio::test]
async fn compilers() {
    let program = "#include <stdio.h>\\nint main() { puts(\"compiled\"); }\\n";
    works(
        &format!("printf '{program}' > a.c; gcc -O2 -pipe a.c -o a; ./a; gcc -c a.c; ar rc a.a a.o; echo $?"),
        "compiled\n0",
    )
    .await;
}

#[tokio::test]
async fn git() {
    if !Path::new("/usr/bin/git").exists() && !Path::new("/usr/local/bin/git").exists() {
        return;
    }
    let script = "git init -q a; cd a; git config user.email a@b.c; git config user.name n
        echo x > f; git add f; git commit -qm first; git checkout -qb other; echo y >> f; git commit -qam second
        git rebase -q master 2>/dev/null || git rebase -q main; git gc -q; git clone -q . ../b; cd ../b; git log --oneline | wc -l";
    works(script, "2").await;
}

#[tokio::test]
async fn python() {
    let script = r#"/usr/bin/python3 - <<'end'
import json, os, re, shutil, sqlite3, subprocess, tempfile, threading, concurrent.futures, asyncio, pwd, ssl, uuid, random
assert subprocess.run(["echo", "x"], capture_output=True).stdout == b"x\n"
with tempfile.TemporaryDirectory() as directory: open(directory + "/file", "w").write("x")
sqlite3.connect("data.db").execute("create table t (a)")
with concurrent.futures.ThreadPoolExecutor(4) as pool: assert sum(pool.map(int, "123")) == 6
async def main(): return (await asyncio.create_subprocess_exec("true")).returncode
asyncio.run(main())
ssl.create_default_context(); pwd.getpwuid(os.getuid()); uuid.uuid4(); os.cpu_count()
shutil.make_archive("archive", "gztar", ".", "data.db")
print("works")
end"#;
    works(script, "works").await;
}

#[tokio::test]
async fn other_programs() {
    works("perl -e 'print \"x\\n\"'; tar cf a.tar --files-from /dev/null; gzip a.tar; ls; echo 'a:; @echo made' | make -f - a", "x\na.tar.gz\nmade").await;
    works("find / -maxdepth 1 -name usr 2>/dev/null || true; id -u > /dev/null; date > /dev/null; dd if=/dev/urandom bs=1 count=4 2>/dev/null | wc -c; stat -c %n /etc/passwd", "4\n/etc/passwd").await;
    if Path::new("/usr/bin/node").exists() {
        works("node -e 'require(\"child_process\").execSync(\"true\"); require(\"fs\").writeFileSync(\"a\", \"b\"); console.log(\"node\")'", "node").await;
    }
}

/// Programs that copy the attributes of files copy the rest. Only what is asked for ACLs warns.
#[tokio::test]
async fn copies_without_attributes() {
    let script = r#"exec 2>&1
        mkdir -m 750 a; echo x > a/file; chmod 640 a/file; ln -s file a/link
        cp -a a b; cp -r --preserve=all a c; cp -p a/file d; install -p -m 640 a/file e; sed -i s/x/x/ e
        tar cf a.tar --xattrs a; mkdir f; tar xpf a.tar --xattrs -C f; tar xpf a.tar --acls -C f 2>/dev/null
        python3 -c 'import shutil; shutil.copytree("a", "g", symlinks=True); shutil.copy2("a/file", "h")'
        stat -c '%a %n' a b c f/a g a/file b/file c/file f/a/file g/file d e h | sort | cut -d' ' -f1 | uniq -c | tr -s ' '
        readlink b/link c/link f/a/link g/link | uniq -c | tr -s ' '"#;
    works(script, "8 640\n 5 750\n 4 file").await;
}
