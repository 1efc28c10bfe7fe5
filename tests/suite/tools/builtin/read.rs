//! `read_file`: lines and their numbers, limits, images, and what it says about missing files.

use serde_json::json;
use values::message::{ContentPart, MediaSource};

use super::Desk;
use crate::support::text::assert_contains;

#[tokio::test]
async fn lines_have_numbers_and_the_last_line_says_how_many_there_are() {
    let desk = Desk::with_files(&[("src/a.rs", "one\n\ntwo"), ("empty", ""), ("win.txt", "a\r\nb\r\n")]).await;
    let read = async |path: &str| desk.call("read_file", json!({"path": path})).await.unwrap();
    let shown = "     1\tone\n     2\t\n     3\ttwo\n[lines 1 to 3 of 3, 8 bytes in the file]";
    for path in [
        "src/a.rs",
        "./src//a.rs",
        "workspace/src/a.rs",
        "/workspace/src/a.rs",
        "file:///workspace/src/%61.rs",
        "src/../src/a.rs",
    ] {
        assert_eq!(read(path).await, shown, "{path}");
    }
    assert_eq!(read("empty").await, "[empty is empty]");
    assert_contains!(
        read("win.txt").await,
        "     1\ta\n     2\tb\n",
        "; lines end with CRLF]"
    );
}

#[tokio::test]
async fn a_part_of_a_long_file_is_read_with_offset_and_limit() {
    let lines: Vec<_> = (1..=5_000).map(|number| format!("line {number}\n")).collect();
    let desk = Desk::with_files(&[("long.txt", &lines.concat())]).await;
    let read = async |offset: usize, limit: usize| {
        let arguments = json!({"path": "long.txt", "offset": offset, "limit": limit});
        desk.call("read_file", arguments).await
    };
    let whole = desk.call("read_file", json!({"path": "long.txt"})).await.unwrap();
    assert_contains!(
        whole,
        "  2000\tline 2000\n[lines 1 to 2000 of 5000,",
        "; read on with offset 2001]"
    );
    let text = read(4_999, 10).await.unwrap();
    assert!(
        text.starts_with("  4999\tline 4999\n  5000\tline 5000\n[lines 4999 to 5000 of 5000,"),
        "{text}"
    );
    assert!(!text.contains("read on"), "{text}");
    assert_eq!(
        read(5_001, 1).await.unwrap_err(),
        "line 5001 is past the end: long.txt has 5000 lines"
    );
    assert_contains!(
        read(0, 1).await.unwrap_err(),
        "/offset: 0 is less than the minimum of 1"
    );
    assert_contains!(read(1, 10_001).await.unwrap_err(), "/limit");
}

#[tokio::test]
async fn huge_lines_and_many_bytes_are_cut() {
    let huge = "é".repeat(1 << 20);
    let wide = format!("{}\n", "x".repeat(1_990)).repeat(1_000);
    let desk = Desk::with_files(&[("huge", &huge), ("wide", &wide)]).await;
    let text = desk.call("read_file", json!({"path": "huge"})).await.unwrap();
    assert_contains!(text, "é… [2095152 more bytes]\n[lines 1 to 1 of 1, 2097152 bytes");
    assert!(text.len() < 2_200);
    let text = desk.call("read_file", json!({"path": "wide"})).await.unwrap();
    assert!(text.len() < 61_000, "{}", text.len());
    assert_contains!(text, "[lines 1 to 30 of 1000,", "; read on with offset 31]");
}

#[tokio::test]
async fn images_and_documents_are_shown_and_other_binary_files_are_refused() {
    let desk = Desk::new();
    let png = b"\x89PNG\r\n\x1a\n\0\0";
    desk.put("a.png", png).await;
    desk.put("a.pdf", b"%PDF-1.7 x").await;
    desk.put("photo", b"\xff\xd8\xff\xe0").await;
    desk.put("a.webp", b"RIFF\0\0\0\0WEBPVP8").await;
    desk.put("a.zip", b"PK\x03\x04\0\0").await;
    desk.put("data", b"abc\0def").await;
    desk.put("latin.txt", b"caf\xe9\n").await;
    desk.put("huge.gif", &[b"GIF89a".to_vec(), vec![0; 5 << 20]].concat())
        .await;

    let execution = desk.execution("read_file", &json!({"path": "a.png"})).await;
    let [text, ContentPart::Image(image)] = execution.content.as_slice() else {
        panic!("{execution:?}")
    };
    assert_eq!(text.as_text(), Some("a.png: image/png, 10 bytes"));
    let MediaSource::Base64 { media_type, data } = &image.source else {
        panic!()
    };
    assert_eq!((media_type.as_str(), data.as_str()), ("image/png", "iVBORw0KGgoAAA=="));
    let execution = desk.execution("read_file", &json!({"path": "a.pdf"})).await;
    assert!(matches!(&execution.content[1], ContentPart::Document(part) if part.name.as_deref() == Some("a.pdf")));
    for (path, media_type) in [("photo", "image/jpeg"), ("a.webp", "image/webp")] {
        let text = desk.call("read_file", json!({"path": path})).await.unwrap();
        assert_contains!(text, media_type);
    }
    for (path, expected) in [
        ("a.zip", "a.zip is a binary file (application/zip, 6 bytes)"),
        ("data", "data is a binary file (of unknown type, 7 bytes)"),
        (
            "huge.gif",
            "huge.gif (image/gif) has 5242886 bytes, more than the 5242880 that can be shown",
        ),
    ] {
        assert_contains!(
            desk.call("read_file", json!({"path": path})).await.unwrap_err(),
            expected
        );
    }
    let text = desk.call("read_file", json!({"path": "latin.txt"})).await.unwrap();
    assert_contains!(text, "caf�", "bytes that are not UTF-8");
}

#[tokio::test]
async fn a_large_image_fits_into_a_result() {
    let desk = Desk::new();
    // The limit of 5 MiB is for the base64 text.
    let most = (5 << 20) / 4 * 3;
    let image = |bytes: usize| [b"\xff\xd8\xff".to_vec(), vec![7; bytes - 3]].concat();
    desk.put("large.jpg", &image(most)).await;
    let execution = desk.execution("read_file", &json!({"path": "large.jpg"})).await;
    assert!(matches!(execution.content[1], ContentPart::Image(_)) && execution.content.len() == 2);
    desk.put("larger.jpg", &image(most + 1)).await;
    let tall = [b"GIF89a".to_vec(), vec![1, 0, 0x41, 0x1f], vec![0; 20]].concat();
    desk.put("tall.gif", &tall).await;
    for (path, problem) in [
        (
            "larger.jpg",
            "it has 5242884 bytes in base64, and some models take at most 5242880",
        ),
        (
            "tall.gif",
            "it has a side of 8001 pixels, and some models take at most 8000",
        ),
    ] {
        let error = desk.call("read_file", json!({"path": path})).await.unwrap_err();
        assert_contains!(error, path, problem);
    }
}

#[tokio::test]
async fn an_error_says_what_exists_instead() {
    let desk = Desk::with_files(&[("src/main.rs", "x"), ("src/deep/util.rs", "x"), ("README.md", "x")]).await;
    for (path, hint) in [
        ("src/mian.rs", "src/mian.rs does not exist; did you mean src/main.rs?"),
        ("scr/main.rs", "scr/main.rs does not exist; did you mean src?"),
        ("util.rs", "util.rs does not exist; did you mean src/deep/util.rs?"),
        ("qqq", "qqq does not exist; the workspace has: README.md, src/"),
        ("src/zzzzzzzz", "does not exist; src has: deep/, main.rs"),
        ("src", "src is a directory, not a file; src has: deep/, main.rs"),
        ("README.md/x", "README.md is a file, not a directory"),
        (".", "\".\" is the workspace itself, not a file"),
        (
            "../secret",
            "the path \"../secret\" can't be used: the path leads out of the workspace",
        ),
        ("/workspace/../../etc/passwd", "leads out of the workspace"),
        ("/etc/passwd", "outside of the workspace, which is at /workspace"),
        ("~/a", "~ is the home directory of commands"),
        ("a\u{0}b", "control characters"),
    ] {
        let error = desk.call("read_file", json!({"path": path})).await.unwrap_err();
        assert_contains!(error, hint);
    }
    let long = "a".repeat(300);
    let error = desk.call("read_file", json!({"path": long})).await.unwrap_err();
    assert_contains!(error, "more than 255 bytes");
    let error = Desk::new().call("read_file", json!({"path": "a"})).await.unwrap_err();
    assert_eq!(error, "a does not exist; the workspace is empty");
}

#[tokio::test]
async fn symlinks_are_followed_but_not_for_ever() {
    let desk = Desk::with_files(&[("dir/a.txt", "hello\n")]).await;
    desk.link("link", "dir/a.txt").await;
    desk.link("loop", "loop2").await;
    desk.link("loop2", "loop").await;
    desk.link("dangling", "nowhere").await;
    assert_contains!(desk.call("read_file", json!({"path": "link"})).await.unwrap(), "hello");
    let error = desk.call("read_file", json!({"path": "loop"})).await.unwrap_err();
    assert_contains!(error, "loop leads through too many symlinks");
    let error = desk.call("read_file", json!({"path": "dangling"})).await.unwrap_err();
    assert_contains!(error, "dangling leads to nothing: dangling is a symlink to \"nowhere\"");
    // What walks over the files is not caught in the loop.
    assert_contains!(
        desk.call("grep", json!({"pattern": "hello"})).await.unwrap(),
        "dir/a.txt\n1: hello"
    );
    let list = desk.call("list_files", json!({"recursive": true})).await.unwrap();
    assert_contains!(list, "loop -> loop2", "dangling -> nowhere", "[6 entries]");
}
