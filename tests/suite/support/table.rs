//! Tables of tests as text: a row is a line, so that rows can be compared at a glance.

/// Returns the rows of a table, whose cells are between bars. The last cell may have bars itself.
pub(crate) fn rows<const CELLS: usize>(table: &str) -> impl Iterator<Item = [&str; CELLS]> {
    let lines = table.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| {
        let cells: Vec<_> = line.splitn(CELLS, '|').map(str::trim).collect();
        cells
            .try_into()
            .unwrap_or_else(|_| panic!("a row has too few cells: {line}"))
    })
}
