import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { chmodSync, chownSync, copyFileSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { AgentCall } from '../../src/contracts/agent/agent-call.ts';
import { AgentFiles, type CallTerms } from '../../src/contracts/agent/agent-files.ts';
import type { FilePlace } from '../../src/contracts/files.ts';
import { InstanceGone } from '../../src/contracts/sandbox-driver.ts';
import { systemClock } from '../../src/embedded/system-clock.ts';
import { builtAgent } from '../../local-cluster/built-agent.ts';
import { filesSuite } from '../contracts/files/files.ts';
import { keepsAttributes } from '../support/harness/tmpfs-attributes.ts';
import { buildLauncher } from '../support/harness/a-spawned-driver.ts';

const ID = 'a';
/** Whom a suite that runs as root takes for the sandbox's user. */
const NOBODY = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** Files of this machine, each call by a process of the agent, as in a Pod. */
class FilesByPipes extends AgentFiles {
  readonly #argv: readonly string[];

  constructor(argv: readonly string[]) {
    super();
    this.#argv = argv;
  }

  override prepare(): void {}

  protected override async begin(
    { id }: FilePlace,
    tokens: readonly (string | Buffer)[],
    terms: CallTerms,
  ): Promise<AgentCall> {
    terms.signal.throwIfAborted();
    if (id !== ID) throw new InstanceGone('there is no such sandbox');
    const [program = '', ...args] = this.#argv;
    const { stdin, stdout } = spawn(program, args, {
      ...NOBODY,
      env: {},
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const connection = Duplex.from({ readable: stdout, writable: stdin });
    const call = new AgentCall({ ...terms, connection, tokens, clock: systemClock() });
    await call.head();
    return call;
  }
}

for (const [kernel, before] of [
  ['this kernel', []],
  ['a kernel without openat2, as gVisor', ['without-openat2']],
] as readonly (readonly [string, readonly string[]])[])
  filesSuite(`an agent by pipes on ${kernel}`, async () => {
    buildLauncher();
    const folder = mkdtempSync(join(tmpdir(), 'sandpool-pipes-'));
    chmodSync(folder, 0o755);
    const place = join(folder, 'of');
    mkdirSync(place);
    if (NOBODY.uid !== undefined) chownSync(place, NOBODY.uid, NOBODY.gid);
    copyFileSync(builtAgent(), join(folder, 'launcher'));
    const source = join(import.meta.dirname, 'without-openat2.c');
    for (const name of before)
      execFileSync('cc', ['-Wall', '-Wextra', '-Werror', '-o', join(folder, name), source]);
    return {
      files: new FilesByPipes([
        ...before.map((name) => join(folder, name)),
        join(folder, 'launcher'),
        'call',
      ]),
      id: ID,
      folder: place,
      keepsMetadata: keepsAttributes(place),
      unknownId: 'b',
      sh: async (script) =>
        spawnSync('/bin/sh', ['-c', script], { ...NOBODY, encoding: 'latin1' }).stdout,
      close: async () => rmSync(folder, { recursive: true }),
    };
  });
