//! The guard before the template engine: rejects templates that build values or nest too deep.
//!
//! The engine's parser is recursive, so deep nesting would exhaust its stack. The guard reads tags
//! as the engine's own lexer does, and is stricter: it rejects a comment, a tag, a string or a
//! bracket without an end. So the guard and the engine always agree on the end of a tag.

/// The statements that a prompt may use.
const STATEMENTS: [&str; 6] = ["if", "elif", "else", "endif", "for", "endfor"];
/// The filters that a prompt may use.
const FILTERS: [&str; 5] = ["default", "length", "lower", "trim", "upper"];
/// The tests that a prompt may use.
const TESTS: [&str; 3] = ["defined", "none", "undefined"];
/// The names that callers can set.
const ROOTS: [&str; 2] = ["variables", "metadata"];
/// Names of constants.
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];
/// Infix operators.
const OPERATORS: [&str; 6] = ["and", "or", "not", "in", "if", "else"];
/// Symbols that a tag may have.
const SYMBOLS: [&str; 17] = [
    "==", "!=", ">=", "<=", "//", ".", "|", "(", ")", "[", "]", "<", ">", "-", "/", "%", ":",
];

/// The most names, texts, numbers and symbols of one tag. For each, the engine may recurse once
/// more.
const MAX_TAG_TOKENS: usize = 100;
/// The most names, texts, numbers and symbols of all tags together.
const MAX_TOKENS: usize = 50_000;
/// The deepest nesting of brackets.
const MAX_BRACKETS: usize = 8;
/// The deepest nesting of `if`, `elif` and `for`.
const MAX_BLOCKS: usize = 50;

/// A part of a prompt that is not allowed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Its position, in bytes.
    pub(super) at: usize,
    /// What is wrong, in words.
    pub(super) words: String,
}

/// A template that the engine can compile and execute within bounds.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// The first name that no caller can set.
    pub(super) unknown: Option<Fault>,
    /// The length of the longest text in a tag, in bytes.
    pub(super) longest_text: usize,
}

#[derive(Debug, Clone, Copy)]
enum Token<'a> {
    Name(&'a str),
    Number,
    Text,
    Symbol(&'a str),
}

/// The kind of the previous token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Operator,
    Operand,
    Dot,
    Pipe,
    Is,
    IsNot,
    /// The name of a filter or a test.
    Applied,
}

#[derive(Debug)]
struct Block<'a> {
    /// The variable of a loop, within its body.
    variable: Option<&'a str>,
    is_loop: bool,
    /// An `if` with each of its `elif`s.
    branches: usize,
}

/// The state of scanning a template.
#[derive(Debug)]
struct Guard<'a> {
    template: &'a str,
    at: usize,
    blocks: Vec<Block<'a>>,
    tokens: usize,
    scanned: Scanned,
}

/// Checks a template. The error is the first part that is not allowed.
pub(super) fn scan(template: &str) -> Result<Scanned, Fault> {
    let mut guard = Guard {
        template,
        at: 0,
        blocks: Vec::new(),
        tokens: 0,
        scanned: Scanned::default(),
    };
    while let Some(offset) = guard.rest().find('{') {
        guard.at += offset;
        match guard.rest().as_bytes().get(1) {
            Some(b'#') => guard.skip_comment()?,
            Some(b'{') => {
                let tokens = guard.tag("}}")?;
                guard.check_expression(&tokens)?;
            }
            Some(b'%') => {
                let at = guard.at;
                guard.check_word()?;
                let tokens = guard.tag("%}")?;
                guard.check_statement(at, &tokens)?;
            }
            _ => guard.at += 1,
        }
    }
    Ok(guard.scanned)
}

impl Fault {
    fn new(at: usize, words: impl Into<String>) -> Self {
        Self {
            at,
            words: words.into(),
        }
    }
}

impl<'a> Guard<'a> {
    fn rest(&self) -> &'a str {
        &self.template[self.at..]
    }

    /// Reads the first two bytes of a tag and the whitespace control after them.
    fn open(&mut self) {
        self.at += 2;
        if self.rest().starts_with(['-', '+']) {
            self.at += 1;
        }
    }

    fn skip_comment(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.open();
        let end = self.rest().find("#}");
        self.at += end.ok_or_else(|| Fault::new(start, "the comment has no end"))? + 2;
        Ok(())
    }

    /// Reads a tag and continues after it.
    fn tag(&mut self, end: &str) -> Result<Vec<(usize, Token<'a>)>, Fault> {
        let start = self.at;
        let mut tokens = Vec::new();
        let mut brackets = Vec::new();
        self.open();
        loop {
            let rest = self.rest().trim_start_matches(|c: char| c.is_ascii_whitespace());
            self.at = self.template.len() - rest.len();
            if rest.is_empty() {
                return Err(Fault::new(start, "the tag has no end"));
            }
            let marked_end = rest.strip_prefix(['-', '+']).filter(|rest| rest.starts_with(end));
            if marked_end.is_some() || rest.starts_with(end) {
                if let Some((at, bracket)) = brackets.pop() {
                    return Err(Fault::new(at, format!("{bracket:?} is not closed")));
                }
                self.at += end.len() + usize::from(marked_end.is_some());
                return Ok(tokens);
            }
            let at = self.at;
            let token = self.token()?;
            match token {
                Token::Symbol(open @ ("(" | "[")) => brackets.push((at, open)),
                Token::Symbol(close @ (")" | "]")) => {
                    let expected = if close == ")" { "(" } else { "[" };
                    if brackets.pop().is_none_or(|(_, open)| open != expected) {
                        return Err(Fault::new(at, format!("{close:?} closes nothing")));
                    }
                }
                _ => (),
            }
            tokens.push((at, token));
            self.tokens += 1;
            if brackets.len() > MAX_BRACKETS {
                return Err(Fault::new(
                    at,
                    format!("brackets nest deeper than {MAX_BRACKETS} levels"),
                ));
            }
            if tokens.len() > MAX_TAG_TOKENS {
                let words = format!("the tag has more than {MAX_TAG_TOKENS} names, texts, numbers and symbols");
                return Err(Fault::new(start, words));
            }
            if self.tokens > MAX_TOKENS {
                let words = format!("the tags have more than {MAX_TOKENS} names, texts, numbers and symbols");
                return Err(Fault::new(start, words));
            }
        }
    }

    /// Reads the next token.
    fn token(&mut self) -> Result<Token<'a>, Fault> {
        let (rest, at) = (self.rest(), self.at);
        let first = rest.chars().next().unwrap_or_default();
        let end_of = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (token, length) = if first == '_' || first.is_ascii_alphabetic() {
            let length = end_of(|c| c == '_' || c.is_ascii_alphanumeric());
            (Token::Name(&rest[..length]), length)
        } else if first.is_ascii_digit() {
            let length = end_of(|c| c == '_' || c.is_ascii_digit());
            if rest[length..].starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(Fault::new(at, "a number has digits and a point"));
            }
            (Token::Number, length)
        } else if first == '"' || first == '\'' {
            let length = text_length(rest, first).ok_or_else(|| Fault::new(at, "the text has no end"))?;
            self.scanned.longest_text = self.scanned.longest_text.max(length);
            (Token::Text, length)
        } else {
            let symbol = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol));
            let refused = || format!("a prompt shows values and does not build them: {first:?} is not allowed");
            let symbol = symbol.ok_or_else(|| Fault::new(at, refused()))?;
            (Token::Symbol(symbol), symbol.len())
        };
        self.at += length;
        Ok(token)
    }

    /// Checks the first word of a statement before the rest of it.
    fn check_word(&self) -> Result<(), Fault> {
        let code = self.rest()[2..].trim_start_matches(|c: char| matches!(c, '-' | '+') || c.is_ascii_whitespace());
        let end = code.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
        let word = &code[..end.unwrap_or(code.len())];
        if STATEMENTS.contains(&word) {
            return Ok(());
        }
        let shown: String = word.chars().take(20).collect();
        let words = format!("a prompt may use {}, not {shown:?}", STATEMENTS.join(", "));
        Err(Fault::new(self.at, words))
    }

    fn check_statement(&mut self, at: usize, tokens: &[(usize, Token<'a>)]) -> Result<(), Fault> {
        let word = match tokens.first() {
            Some((_, Token::Name(word))) => *word,
            _ => "",
        };
        let lost = |block: &str| Fault::new(at, format!("no `{block}` is open for `{word}`"));
        match (word, tokens) {
            ("if", _) => self.open_block(at, None)?,
            ("for", [_, (_, Token::Name(variable)), (_, Token::Name("in")), expression @ ..]) => {
                self.open_block(at, Some(variable))?;
                return self.check_expression(expression);
            }
            ("for", _) => return Err(Fault::new(at, "a loop begins with `for NAME in`")),
            ("elif", _) => {
                let open = self.blocks.last_mut().filter(|block| !block.is_loop);
                open.ok_or_else(|| lost("if"))?.branches += 1;
                self.check_depth(at)?;
            }
            ("else", _) => {
                let open = self.blocks.last_mut().ok_or_else(|| lost("if` or `for"))?;
                open.variable = None;
            }
            _ => {
                let is_loop = word == "endfor";
                let open = self.blocks.pop().filter(|block| block.is_loop == is_loop);
                open.ok_or_else(|| lost(if is_loop { "for" } else { "if" }))?;
            }
        }
        self.check_expression(tokens.get(1..).unwrap_or_default())
    }

    fn open_block(&mut self, at: usize, variable: Option<&'a str>) -> Result<(), Fault> {
        self.blocks.push(Block {
            variable,
            is_loop: variable.is_some(),
            branches: 1,
        });
        self.check_depth(at)
    }

    fn check_depth(&self, at: usize) -> Result<(), Fault> {
        let depth: usize = self.blocks.iter().map(|block| block.branches).sum();
        if depth > MAX_BLOCKS {
            let words = format!("more than {MAX_BLOCKS} `if`, `elif` and `for` are open");
            return Err(Fault::new(at, words));
        }
        Ok(())
    }

    /// Checks that all names are known and that nothing is built or called. The engine checks the
    /// syntax of the expression.
    fn check_expression(&mut self, tokens: &[(usize, Token<'a>)]) -> Result<(), Fault> {
        let mut after = After::Operator;
        for &(at, token) in tokens {
            let fault = |words: String| Err(Fault::new(at, words));
            after = match (after, token) {
                (After::Dot, Token::Name(_) | Token::Number) => After::Operand,
                (After::Is, Token::Name("not")) => After::IsNot,
                (After::Pipe, Token::Name(name)) if FILTERS.contains(&name) => After::Applied,
                (After::Is | After::IsNot, Token::Name(name)) if TESTS.contains(&name) => After::Applied,
                (After::Pipe, Token::Name(name)) => {
                    return fault(format!("filter {name} is unknown; known are {}", FILTERS.join(", ")));
                }
                (After::Is | After::IsNot, Token::Name(name)) => {
                    return fault(format!("test {name} is unknown; known are {}", TESTS.join(", ")));
                }
                (After::Dot | After::Pipe | After::Is | After::IsNot, _) => {
                    return fault("a name is expected here".to_owned());
                }
                (_, Token::Name("is")) => After::Is,
                (_, Token::Name(name)) if OPERATORS.contains(&name) => After::Operator,
                (_, Token::Name(name)) => {
                    self.look_up(at, name);
                    After::Operand
                }
                (_, Token::Number | Token::Text | Token::Symbol(")" | "]")) => After::Operand,
                (After::Operand, Token::Symbol("(")) => {
                    return fault("a prompt shows values and does not call them".to_owned());
                }
                (After::Operator | After::Applied, Token::Symbol("[")) => {
                    return fault("a prompt shows values and does not build them: lists are not allowed".to_owned());
                }
                (After::Applied, Token::Symbol(".")) => return fault("a filter or test has a simple name".to_owned()),
                (_, Token::Symbol(".")) => After::Dot,
                (_, Token::Symbol("|")) => After::Pipe,
                (_, Token::Symbol(_)) => After::Operator,
            };
        }
        Ok(())
    }

    fn look_up(&mut self, at: usize, name: &'a str) {
        let mut variables = self.blocks.iter().filter_map(|block| block.variable);
        let is_known = ROOTS.contains(&name)
            || CONSTANTS.contains(&name)
            || variables.any(|variable| variable == name || name == "loop");
        if !is_known && self.scanned.unknown.is_none() {
            let words =
                format!("nothing can set `{name}`: a prompt reads `variables`, `metadata` and what its loops name");
            self.scanned.unknown = Some(Fault::new(at, words));
        }
    }
}

/// Returns the length of a quoted text with its quotes.
fn text_length(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if !escaped && c == quote {
            return Some(at + 1);
        }
        escaped = !escaped && c == '\\';
    }
    None
}
