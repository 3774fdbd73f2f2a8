import { expect } from 'chai';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { AgentCall } from '../../src/contracts/agent/agent-call.ts';
import { piecesOf } from '../../src/contracts/agent/process-output.ts';
import { connectHolder } from '../../src/embedded/spawner/processes/holder-socket.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import {
  absentOrForbidden,
  allowedCalls,
  parse,
  pick,
  refusedCalls,
  refusedFiles,
  type Answers,
} from './probe-answers.ts';
import {
  bwrapOptions,
  collect,
  exec,
  hostUid,
  joinOrder,
  openWorkshop,
  orderText,
  startSandbox,
  within,
  type Sandbox,
  type Workshop,
} from './support.ts';

/** What the host has that a sandbox must not reach, as arguments of the probe. */
interface HostSecrets {
  readonly probeArgs: readonly string[];
  close(): Promise<void>;
}

const OWN_TERMINAL = 'a terminal of its own';
const TERMINAL = ['columns', '400', 'rows', '50'];

describe('escapes from a sandbox', function () {
  let workshop: Workshop;
  let secrets: HostSecrets;

  before(async () => {
    workshop = openWorkshop();
    secrets = await openSecrets(workshop.folder);
  });
  after(async () => {
    await secrets.close();
    workshop.close();
  });

  const ways: Readonly<Record<string, (command: readonly string[]) => Promise<string>>> = {
    'its main process': async (command) => {
      const sandbox = await startSandbox(workshop, { command });
      return (await within(sandbox.output.end, 'the probe ends')).stdout;
    },
    'a command joined to it': (command) =>
      inSandbox(async (sandbox) => (await exec(workshop, sandbox, { command })).stdout),
    'a process with a holder': (command) => inSandbox((sandbox) => held(sandbox, command)),
    [OWN_TERMINAL]: (command) => inSandbox((sandbox) => held(sandbox, command, TERMINAL)),
    "a terminal of the host's": (command) =>
      inSandbox(
        (sandbox) => held(sandbox, command, TERMINAL),
        ['--dev-bind', '/dev/null', '/dev/pts/ptmx'],
      ),
  };

  for (const [way, run] of Object.entries(ways)) {
    describe(`tried from ${way}`, () => {
      let answers: Answers;

      before(async () => {
        answers = parse(await run(['/.sandpool/probe', ...secrets.probeArgs]));
      });

      it('by system calls are refused, while ordinary calls work', () => {
        expect(pick(answers, { ...refusedCalls, ...allowedCalls })).to.deep.equal({
          ...refusedCalls,
          ...allowedCalls,
        });
      });

      it("by the kernel's own files find them absent or forbidden", () => {
        for (const name of refusedFiles) expect(absentOrForbidden, name).to.include(answers[name]);
      });

      it('to files and sockets of the host fail', () => {
        for (const name of named(secrets.probeArgs)) {
          if (name === 'read /dev/pts/0' && way === OWN_TERMINAL) continue;
          expect([...absentOrForbidden, 'ECONNREFUSED', 'ENETUNREACH'], name).to.include(
            answers[name],
          );
        }
      });

      it("by other processes, descriptors and terminals find only the sandbox's own", () => {
        const processes = (answers['processes'] ?? '').split(' ');
        expect(processes).to.have.length.within(2, 3);
        expect(processes[0]).to.equal('1');
        // 3 is the probe's own, by which it lists them.
        expect(answers).to.include({
          descriptors: '0 1 2 3',
          terminals: way === OWN_TERMINAL ? '. .. 0 ptmx' : '. .. ptmx',
          interfaces: 'default lo',
        });
      });
    });
  }

  it('are found by the probe without a filter', async () => {
    const identity = process.getuid?.() === 0 ? { uid: hostUid, gid: hostUid } : {};
    const bare = spawn(
      '/usr/bin/bwrap',
      [...bwrapOptions(workshop, { command: [] }), '/.sandpool/probe'],
      { stdio: ['ignore', 'pipe', 'pipe'], env: {}, ...identity },
    );

    const answers = parse((await within(collect(bare).end, 'the probe ends')).stdout);

    expect(answers).to.include({
      keyctl: 'ok',
      ptrace: 'ok',
      personality: 'ok',
      vsock: 'ok',
      netfilter: 'ok',
      TIOCSTI: 'ENOTTY',
    });
    expect(answers['a call newer than the filter']).to.equal('ENOSYS');
  });

  it("stay impossible on the host's network", async () => {
    const sandbox = await startSandbox(workshop, {
      command: ['/.sandpool/probe', ...secrets.probeArgs],
      network: 'host',
    });

    const answers = parse((await within(sandbox.output.end, 'the probe ends')).stdout);

    expect(pick(answers, refusedCalls)).to.deep.equal(refusedCalls);
    expect(Object.entries(answers).find(([name]) => name.startsWith('tcp 127'))?.[1]).to.equal(
      'ok',
    );
  });

  async function inSandbox<T>(
    use: (sandbox: Sandbox) => Promise<T>,
    extraBwrap: readonly string[] = [],
  ): Promise<T> {
    const sandbox = await startSandbox(workshop, { command: ['sleep', '60'], extraBwrap });
    try {
      return await use(sandbox);
    } finally {
      await sandbox.stop();
    }
  }

  /** By a holder, as processes are run. */
  async function held(
    sandbox: Sandbox,
    command: readonly string[],
    terms: readonly string[] = [],
  ): Promise<string> {
    const child = spawn(workshop.launcher, ['hold'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    });
    const [, , , socket] = child.stdio;
    if (!(socket instanceof Duplex)) throw new Error('it has no socket');
    const order = Buffer.from(
      orderText([
        ['holder', workshop.folder, 'held', 'told', '{}', ...terms],
        ...joinOrder(sandbox, { command }),
      ]),
    );
    const length = Buffer.alloc(4);
    length.writeUInt32BE(order.length);
    socket.write(Buffer.concat([length, order]));
    await within(once(socket, 'data'), 'it has begun');
    try {
      const call = new AgentCall({
        connection: connectHolder(workshop.folder, 'held'),
        tokens: ['output'],
        clock: systemClock(),
        signal: new AbortController().signal,
      });
      let shown = '';
      for await (const piece of piecesOf(call))
        if (piece.kind === 'bytes') shown += String(piece.bytes);
      return shown;
    } finally {
      child.kill('SIGKILL');
      rmSync(join(workshop.folder, 'held'));
    }
  }
});

async function openSecrets(folder: string): Promise<HostSecrets> {
  const file = join(folder, 'secret');
  const open = join(folder, 'open');
  const path = join(folder, 'socket');
  const abstract = `sandpool-probe-${process.pid}`;
  writeFileSync(file, 'secret', { mode: 0o600 });
  writeFileSync(open, 'not bound');
  const servers = await Promise.all([
    listen({ port: 0, host: '0.0.0.0' }),
    listen({ path }),
    listen({ path: `\0${abstract}` }),
  ]);
  chmodSync(path, 0o777);
  const address = servers[0]?.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const outer = Object.values(networkInterfaces())
    .flat()
    .find((found) => found && !found.internal && found.family === 'IPv4');
  return {
    probeArgs: [
      'read',
      file,
      'write',
      file,
      'read',
      open,
      'read',
      '/etc/shadow',
      'read',
      `/proc/${process.pid}/environ`,
      'read',
      `/proc/${process.pid}/fd`,
      'read',
      '/dev/pts/0',
      'unix',
      path,
      'abstract',
      abstract,
      'tcp',
      `127.0.0.1:${port}`,
      ...(outer ? ['tcp', `${outer.address}:${port}`] : []),
    ],
    close: async () => {
      await Promise.all(servers.map(async (server) => once(server.close(), 'close')));
    },
  };
}

async function listen(where: { port: number; host: string } | { path: string }): Promise<Server> {
  const server = createServer((socket) => socket.destroy()).listen(where);
  await once(server, 'listening');
  return server;
}

function named(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => (index % 2 === 0 ? [`${arg} ${args[index + 1]}`] : []));
}
