// The types of the API as the console reads them. The description of the API (`/openapi.json`) has all fields.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cache_read_tokens?: number;
  cost?: number | null;
}

export interface Failure {
  code: string;
  message: string;
  source_name?: string;
}

export type RunStatus =
  'queued' | 'running' | 'completed' | 'stopped' | 'failed' | 'cancelled' | 'waiting' | 'answered';

export interface OpenCall {
  call_id: string;
  kind: 'approval' | 'client' | 'input' | 'unknown';
  tool: string;
  arguments: Json;
  arguments_hash: string;
  may_remember: boolean;
  expires_at: string;
  reason?: string;
  response_schema?: Json;
}

export interface Run {
  run_id: string;
  session_id: string | null;
  base_session_id: string | null;
  agent: string;
  agent_version: string | null;
  model: string;
  answered_by: string | null;
  mode: string;
  durability: string;
  thread: string | null;
  attempts: number;
  status: RunStatus;
  answer_run_id: string | null;
  stop_reason: string | null;
  stop_signal?: { message: string; source: string | null } | null;
  usage: Usage;
  step_count: number;
  error: { code: string; message: string; phase?: string } | null;
  metadata: { [key: string]: Json };
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  duration_ms: number | null;
  required_action?: { calls: OpenCall[] } | null;
  /** What the run was started with, if it is kept. */
  input?: { role: string; name: string | undefined; content: Part[] }[];
}

/** A content part of a message. Which fields it has depends on its type. */
export interface Part {
  type: string;
  text?: string;
  id?: string;
  name?: string;
  arguments?: string;
  call_id?: string;
  content?: Part[];
  is_error?: boolean;
}

export interface Message {
  id: string;
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: Part[];
}

export interface ModelRequest {
  model: string;
  started_at: string;
  first_token_at: string | null;
  ended_at: string;
  attempts: number;
  error: Failure | null;
}

export interface ToolExecution {
  call_id: string;
  name: string;
  is_error: boolean;
  verdict?: string;
  started_at: string;
  completed_at: string;
  duration_ms: number;
  subagent?: { agent: string; session_id: string; status: string; usage: Usage; steps: StepRecord[] };
}

export interface StepRecord {
  step_number: number;
  step_type: string;
  finish_reason: string | null;
  answered_by?: string | null;
  model: string | null;
  usage: Usage;
  started_at: string;
  completed_at: string;
  model_requests?: ModelRequest[];
  tool_executions: ToolExecution[];
  errors: Failure[];
  messages?: Message[];
}

export interface Session {
  session_id: string;
  parent_session_id: string | null;
  root_session_id: string;
  merged_session_id: string | null;
  environment_session_id: string | null;
  run_id: string | null;
  run_status: 'completed' | 'stopped' | 'waiting' | null;
  thread: string | null;
  agent: string;
  depth: number;
  message_count: number;
  title?: string | null;
  preview?: string | null;
  has_files_changed: boolean;
  created_at: string;
  /** Only in a list of trees. */
  tree?: { session_count: number; last_activity_at: string; threads: string[] };
}

/** A waiting run in the list of approvals. */
export interface Approval {
  run_id: string;
  session_id: string;
  thread: string | null;
  agent: string;
  asked_at: string;
  expires_at: string;
  required_action: { calls: OpenCall[]; omitted_calls?: number };
}

export interface FileVersion {
  kind: string;
  size?: number;
  hash?: string;
  executable?: boolean;
}

/** What a merge can't combine. */
export interface Conflict {
  part: 'files' | 'variables' | 'resources';
  name: string;
  kind: string;
}

export interface FileChange {
  path: string;
  left?: FileVersion;
  right?: FileVersion;
  diff?: string;
  binary?: boolean;
  truncated?: boolean;
}

/** An event of a run, or one nested in an event of a subagent. */
export interface RunEvent {
  sequence?: number;
  type: string;
  time?: string;
  data: any;
}

export interface Page<T> {
  data: T[];
  next_cursor: string | null;
  from?: number;
  total?: number;
}

// What the folder `logic` makes of them.

/** A request to a model, of a stored or a live step. Times are milliseconds since 1970. */
export interface RequestTrace {
  id?: string;
  model: string;
  start: number;
  /** The first piece of the completion that is no reasoning, if events tell it. */
  first: number | null;
  /** When the model reasoned; only events tell it. */
  think: [number, number] | null;
  /** Null while the request works. */
  end: number | null;
  attempts: number;
  error: string | null;
}

/** A call of a tool as events show it. */
export interface LiveCall {
  id: string;
  name: string;
  arguments: string;
  /** Null as long as the model writes the call. */
  start: number | null;
  end: number | null;
  output: string;
  content: Part[] | null;
  isError: boolean;
  agent: string | null;
  /** The state of the subagent that works on it. */
  below: LiveState | null;
}

export interface LiveStep {
  number: number;
  start: number;
  end: number | null;
  text: string;
  reasoning: string;
  requests: RequestTrace[];
  calls: LiveCall[];
  usage: Usage | null;
}

/** The state of a run as its events show it. */
export interface LiveState {
  /** The number of the last event. */
  last: number;
  /** The time of the last event. */
  now: number;
  steps: Map<number, LiveStep>;
  /** The states of subagents at any depth. */
  agents: Map<string, LiveState>;
  /** The run, as its terminal event has it. */
  end: Run | null;
  /** Why the reader was dropped. It may come back. */
  dropped: string | null;
  /** The number of steering messages that joined the conversation. */
  applied: number;
  /** Whether earlier events are no longer retained. */
  isPartial: boolean;
}

/** A call of a tool in the timeline. */
export interface Call {
  id: string;
  name: string;
  arguments: string;
  /** Null if it was not executed. */
  start: number | null;
  end: number;
  isError: boolean;
  isLive: boolean;
  content: Part[] | null;
  /** What a command has printed so far. */
  output: string;
  agent: string | null;
  cost?: number | null;
  /** The steps of the subagent. */
  below: Step[];
  raw: any;
}

/** A step in the timeline. */
export interface Step {
  number: number;
  start: number;
  end: number;
  text: string;
  reasoning: string;
  requests: (RequestTrace & { end: number })[];
  calls: Call[];
  errors: Failure[];
  usage: Usage | null;
  model: string;
  isLive: boolean;
  raw: any;
}

export interface Interval {
  start: number;
  end: number;
}

export interface Bar extends Interval {
  kind: 'wait' | 'think' | 'write' | 'tool' | 'sub' | 'fail' | 'open';
}

export interface Row extends Interval {
  /** The row in the URL: `3`, `3.model`, `3.call_1`, `3.call_1/2.model`. */
  key: string;
  kind: 'step' | 'model' | 'tool' | 'unread';
  depth: number;
  /** The number of the step of the run. */
  number: number;
  label: string;
  bars: Bar[];
  /** The times of retries, of which only the number is known. */
  retries: number[];
  cost?: number | null;
  isFailed: boolean;
  /** Whether the call waits for an answer. */
  isOpen: boolean;
  isLive: boolean;
  /** Whether the rows of the step are shown below it. */
  hasRows: boolean;
  step: Step | null;
  call: Call | null;
}

/** Positions are parts of the width, from 0 to 1. */
export interface Scale {
  position: (time: number) => number;
  ticks: { at: number; label: string }[];
  breaks: { at: number; label: string }[];
}

export interface DiffLine {
  kind: 'add' | 'del' | 'same' | 'hunk';
  text: string;
  left?: number;
  right?: number;
}

export interface FileDiff {
  path: string;
  lines: DiffLine[];
}

export type Inline =
  | { type: 'text' | 'code'; text: string }
  | { type: 'strong' | 'em' | 'del'; inline: Inline[] }
  | { type: 'link'; href: string; inline: Inline[] }
  | { type: 'break' };

export type Block =
  | { type: 'heading'; level: number; inline: Inline[] }
  | { type: 'paragraph'; inline: Inline[] }
  | { type: 'code'; language: string; text: string }
  | { type: 'list'; start: number | null; items: Block[][] }
  | { type: 'quote'; blocks: Block[] }
  | { type: 'table'; head: Inline[][]; rows: Inline[][][] }
  | { type: 'rule' };

/** The sessions of a tree, newest first. */
export interface Tree {
  list: Session[];
  byId: Map<string, Session>;
  children: Map<string, Session[]>;
}

/** A row of a tree: a session, a folded stretch, attempts that nobody continued, or a removed session. */
export interface TreeRow {
  /** The row in the URL: the id, after a colon if it is folded. */
  key: string;
  kind: 'session' | 'line' | 'attempts' | 'removed';
  /** The session, the newest of the folded ones, or one that continues the removed one. */
  session: Session;
  members: Session[];
  /** The session to which its line goes. */
  parent: string | null;
}

/** A line in a lane, from its row to that of the parent. */
export interface LaneSpan {
  lane: number;
  colour: number;
  start: number;
  end: number;
  from: string;
  want: string;
  isMerge: boolean;
}

export interface LaidRow {
  row: TreeRow;
  lane: number;
  colour: number;
  /** The lines that go past it. */
  passes: LaneSpan[];
  /** The lines that end here. */
  joins: LaneSpan[];
  down?: LaneSpan;
  /** The line to its second parent. */
  merge?: LaneSpan;
}
