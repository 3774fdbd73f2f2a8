import { LAST, type Changes, type Frame, type WholeAnswer } from './a-proxy-between.ts';
import type { CONTROL_STEPS } from './control-steps.ts';
import type { SERVICE_STEPS } from './service-steps.ts';

type Json = Record<string, unknown>;

/** One thing that a server does wrong, and the step of the suites that has to notice it. */
export interface ServerFault<Step> {
  readonly name: string;
  readonly step: Step;
  readonly changes: () => Changes;
}

const CREATE = /^(?:\/v2)?\/sandboxes$/;
const ONE = /^\/sandboxes\/\w+$/;
const CONNECT = /^(?:\/v2)?\/sandboxes\/\w+\/connect$/;
const PAUSE = /\/pause$/;
const HEALTH = /^\/health$/;
const FILES = /^\/files$/;
const ANY = /^/;

/** Changes the bodies of answers with a status. */
const bodies =
  (path: RegExp, status: number, change: (body: Json) => unknown): (() => Changes) =>
  () => ({
    whole: (answer, at) => {
      if (!path.test(at) || answer.status !== status) return;
      answer.body = Buffer.from(JSON.stringify(change(bodyOf(answer))));
    },
  });

const bodyOf = ({ body }: WholeAnswer): Json => JSON.parse(body.toString('utf8')) as Json;

const without =
  (field: string) =>
  (body: Json): Json => {
    const { [field]: _left, ...rest } = body;
    return rest;
  };

/** Has one status stand in the place of another. */
const statuses =
  (path: RegExp, given: number, told: number): (() => Changes) =>
  () => ({
    whole: (answer, at) => {
      if (!path.test(at) || answer.status !== given) return;
      answer.status = told;
      if (path !== HEALTH) answer.body = Buffer.from(JSON.stringify({ code: told, message: 'x' }));
    },
  });

/** Passes whoever has no token, or a wrong one, as though he had the one of the sandbox. */
const lettingIn = (): Changes => {
  let token = '';
  return {
    request: (headers, path) => {
      if (HEALTH.test(path)) headers['x-access-token'] = token;
    },
    whole: (answer, path) => {
      if (CREATE.test(path)) token = String(bodyOf(answer)['envdAccessToken']);
    },
  };
};

const CREATES = 'creates a sandbox, shows it, and ends it once';
const MOVES = 'moves the end of a sandbox either way, and on alone by a connection';

/** What a control API may do wrong. */
export const CONTROL_FAULTS: readonly ServerFault<keyof typeof CONTROL_STEPS>[] = [
  {
    name: 'says the code of an error as text',
    step: CREATES,
    changes: bodies(ONE, 404, (body) => ({ ...body, code: '404' })),
  },
  {
    name: 'says no code of an error',
    step: CREATES,
    changes: bodies(ONE, 404, without('code')),
  },
  {
    name: 'writes its ids as UUIDs',
    step: CREATES,
    changes: bodies(CREATE, 201, (body) => ({
      ...body,
      sandboxID: String(body['sandboxID']).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    })),
  },
  {
    name: 'is of a version that is too old',
    step: CREATES,
    changes: bodies(CREATE, 201, (body) => ({ ...body, envdVersion: '0.0.9' })),
  },
  {
    name: 'says no version',
    step: CREATES,
    changes: bodies(CREATE, 201, without('envdVersion')),
  },
  {
    name: 'says of the health of what is gone that it was not found',
    step: CREATES,
    changes: statuses(HEALTH, 502, 404),
  },
  {
    name: 'says no domain',
    step: 'names the host of a port by a name that URLs can have',
    changes: bodies(CREATE, 201, without('domain')),
  },
  {
    name: 'does not say when a sandbox ends',
    step: MOVES,
    changes: bodies(ONE, 200, without('endAt')),
  },
  {
    name: 'takes a connection to what is gone for its own fault',
    step: MOVES,
    changes: statuses(CONNECT, 404, 500),
  },
  {
    name: 'does not say that a list goes on',
    step: 'lists sandboxes by their metadata, page by page',
    changes: () => ({
      whole: ({ headers }) => {
        delete headers['x-next-token'];
      },
    }),
  },
  {
    name: 'refuses a second pause by another status than 409',
    step: 'pauses a sandbox once, and has it go on by a connection',
    changes: statuses(PAUSE, 409, 400),
  },
  {
    name: 'forbids what is of another tenant',
    step: "says of another tenant's sandbox what it says of none",
    changes: statuses(ONE, 404, 403),
  },
  {
    name: 'does not ask for the token of a sandbox',
    step: 'asks for the token of a sandbox, whoever knows its id',
    changes: lettingIn,
  },
  {
    name: 'forbids a key that is none',
    step: 'refuses a key that is none',
    changes: statuses(CREATE, 401, 403),
  },
];

/** Changes events of a process, or leaves them out. */
const events =
  (change: (event: Json) => Json | undefined): (() => Changes) =>
  () => ({
    frame: (frame, path) => {
      if (frame.flags === LAST || !path.startsWith('/process.Process/')) return [frame];
      const { event } = JSON.parse(frame.text) as { readonly event: Json };
      const changed = change(event);
      return changed ? [{ ...frame, text: JSON.stringify({ event: changed }) }] : [];
    },
  });

const withoutEvent = (name: string): (() => Changes) =>
  events((event) => (name in event ? undefined : event));

const lastFrame =
  (change: (frame: Frame) => readonly Frame[]): (() => Changes) =>
  () => ({ frame: (frame) => (frame.flags === LAST ? change(frame) : [frame]) });

const changedEnd = (change: (end: Json) => Json): (() => Changes) =>
  events((event) => ('end' in event ? { end: change(event['end'] as Json) } : event));

/** Has what is refused be told as done. */
const done =
  (path: RegExp, given: number, body: Json): (() => Changes) =>
  () => ({
    whole: (answer, at) => {
      if (!path.test(at) || answer.status !== given) return;
      answer.status = 200;
      answer.body = Buffer.from(JSON.stringify(body));
    },
  });

const RUNS = 'runs commands, and says how they ended';
const COMES_BACK = 'comes back to a command that it left, gives it input, and kills it once';
const FILE_STEP = 'writes, reads, lists, moves and removes files';

/** What the services of a sandbox may do wrong. */
export const SERVICE_FAULTS: readonly ServerFault<keyof typeof SERVICE_STEPS>[] = [
  {
    name: 'does not say that it is alive',
    step: 'says that a silent command is alive',
    changes: withoutEvent('keepalive'),
  },
  { name: 'does not say that a process began', step: RUNS, changes: withoutEvent('start') },
  { name: 'does not say that a process ended', step: RUNS, changes: withoutEvent('end') },
  {
    name: 'does not say by which code a process ended',
    step: RUNS,
    changes: changedEnd(without('exitCode')),
  },
  {
    name: 'writes output as it is',
    step: RUNS,
    changes: events((event) => {
      const { stdout } = (event['data'] ?? {}) as { readonly stdout?: string };
      return stdout === undefined
        ? event
        : { data: { stdout: Buffer.from(stdout, 'base64').toString('utf8') } };
    }),
  },
  { name: 'ends its streams without a last frame', step: RUNS, changes: lastFrame(() => []) },
  {
    name: 'compresses last frames',
    step: RUNS,
    changes: lastFrame((frame) => [{ ...frame, flags: LAST | 1 }]),
  },
  {
    name: 'refuses a stream by its status',
    step: COMES_BACK,
    changes: () => ({
      instead: ({ flags, text }) =>
        flags === LAST && text.includes('not_found')
          ? { status: 404, body: Buffer.from('{"code":"not_found","message":"no such process"}') }
          : undefined,
    }),
  },
  {
    name: 'kills what has ended',
    step: COMES_BACK,
    changes: done(/\/SendSignal$/, 404, {}),
  },
  {
    name: 'says of what was killed that it exited',
    step: COMES_BACK,
    changes: changedEnd((end) =>
      end['exitCode'] === -1
        ? { exitCode: 137, exited: true, status: 'exit status 137', error: 'exit status 137' }
        : end,
    ),
  },
  {
    name: 'does not say which files it wrote',
    step: FILE_STEP,
    changes: bodies(FILES, 200, () => []),
  },
  {
    name: 'takes a missing file for a bad argument',
    step: FILE_STEP,
    changes: statuses(FILES, 404, 400),
  },
  {
    name: 'does not say what an entry is',
    step: FILE_STEP,
    changes: bodies(/\/ListDir$/, 200, ({ entries }) => ({
      entries: (entries as Json[]).map(without('type')),
    })),
  },
  {
    name: 'makes a folder that there is already',
    step: FILE_STEP,
    changes: done(/\/MakeDir$/, 409, { entry: { name: 'b', type: 2, path: '/tmp/a/b' } }),
  },
  {
    name: 'ends a watch where it should say that it began',
    step: 'is told what changes in a folder',
    changes: () => ({
      frame: (frame) =>
        frame.text.startsWith('{"start"') ? [{ flags: LAST, text: '{}' }] : [frame],
    }),
  },
  {
    name: 'says of a sandbox that is gone that it was not found',
    step: 'says that it is gone once it was killed',
    changes: statuses(ANY, 502, 404),
  },
];
