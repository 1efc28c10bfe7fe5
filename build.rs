//! Compresses the files of the console, and writes the table of them that
//! `src/http/console/files.rs` includes. So a file of the folder is in the program, and nothing
//! lists it.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

/// The folder of the console. The folder with the compressed files has the same name.
const CONSOLE: &str = "console";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={CONSOLE}");
    let output = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut paths = Vec::new();
    add_folder("", &output.join(CONSOLE), &mut paths)?;
    // The order of a folder differs between machines, and builds are the same everywhere.
    paths.sort();
    let rows = paths.iter().map(|path| {
        let compressed = format!("/{CONSOLE}/{path}.gz");
        format!("({path:?}, include_bytes!(concat!(env!(\"OUT_DIR\"), {compressed:?})).as_slice()),\n")
    });
    let table = format!("&[\n{}]\n", rows.collect::<Vec<_>>().concat());
    fs::write(output.join("console_files.rs"), table)?;
    Ok(())
}

/// Compresses the files of a folder, and adds their paths. `folder` is empty or ends with a slash.
/// Paths are below the folder of the console.
fn add_folder(folder: &str, output: &Path, paths: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(output.join(folder))?;
    for entry in fs::read_dir(Path::new(CONSOLE).join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name
            .to_str()
            .ok_or_else(|| format!("{} is not UTF-8", name.display()))?;
        let path = format!("{folder}{name}");
        if !is_served(&path) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            add_folder(&format!("{path}/"), output, paths)?;
        } else {
            let compressed = compress(&fs::read(entry.path())?)?;
            fs::write(output.join(format!("{path}.gz")), compressed)?;
            paths.push(path);
        }
    }
    Ok(())
}

/// Returns whether browsers need a file or a folder. Tests, types and packages only check the
/// console, and hidden files belong to editors and systems.
fn is_served(path: &str) -> bool {
    let is_hidden = path.rsplit('/').next().is_some_and(|name| name.starts_with('.'));
    let is_check = path == "tests" || [".json", ".md", ".d.ts"].iter().any(|end| path.ends_with(end));
    !is_hidden && !is_check
}

fn compress(plain: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain)?;
    encoder.finish()
}
