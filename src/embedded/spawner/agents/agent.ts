import { spawn, type ChildProcess } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterReading } from '../after-reading.ts';
import { complaintOf } from '../complaint.ts';
import type { JoinPlace } from '../sandbox/join-place.ts';
import { filesOrder, forwardOrder } from '../orders.ts';
import { withPipes } from '../../../lib/processes.ts';

const READY = 'ready\n';
const READY_WITHIN_MS = 5_000;

export type AgentKind = 'forward' | 'files';

export interface AgentTerms {
  readonly kind: AgentKind;
  readonly launcherPath: string;
  readonly place: JoinPlace;
  /** Only the spawner may enter it. */
  readonly folder: string;
  readonly name: string;
}

const ORDERS = { forward: forwardOrder, files: filesOrder };
const SERVED: Readonly<Record<AgentKind, string>> = { forward: 'ports', files: 'files' };

/**
 * A `launcher forward` or `launcher files` process, which ends with the sandbox and with this
 * process (native/README.md).
 */
export class Agent {
  readonly socket: string;
  readonly ready: Promise<void>;
  /** Settles after process and socket are gone. */
  readonly ended: Promise<void>;
  readonly #child: ChildProcess;

  /** Throws if the agent can't start. */
  constructor({ kind, launcherPath, place, folder, name }: AgentTerms) {
    this.socket = join(folder, name);
    const child = withPipes(
      spawn(launcherPath, [kind], {
        stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
        env: {},
        cwd: '/',
      }),
    );
    this.#child = child;
    this.ended = new Promise((resolve) => {
      child.once('close', () => {
        rmSync(this.socket, { force: true });
        resolve();
      });
    });
    this.ready = readiness(child, SERVED[kind]);
    this.ready.catch(() => this.close());
    child.stdin?.on('error', () => {});
    const order = child.stdio[3];
    if (order && 'end' in order)
      order
        .on('error', () => {})
        .end(
          ORDERS[kind]({
            init: place.init,
            user: place.user,
            bare: place.bare,
            cgroups: place.cgroups,
            folder,
            name,
          }),
        );
  }

  close(): void {
    this.#child.kill('SIGKILL');
  }
}

const readiness = (child: ChildProcess, served: string): Promise<void> =>
  new Promise((resolve, reject) => {
    let told = '';
    const complaint = complaintOf(child);
    const fail = (reason: string): void => {
      callOff();
      reject(new Error(`the sandbox's ${served} cannot be reached: ${complaint() || reason}`));
    };
    const callOff = afterReading(READY_WITHIN_MS, () => fail('it takes too long'));
    child.stdout?.on('data', (bytes: Buffer) => {
      if (told.length < READY.length) told += String(bytes);
      if (!told.startsWith(READY)) return;
      callOff();
      resolve();
    });
    child.once('error', (error) => fail(error.message));
    child.once('close', (code, signal) => fail(`the launcher ended with ${code ?? signal}`));
  });
