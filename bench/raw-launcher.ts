import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import type { InstanceDefinition } from '../src/model/templates/template.ts';
import { removeCgroups } from '../src/embedded/spawner/sandbox/cgroup-folders.ts';
import { findCgroups } from '../src/embedded/spawner/sandbox/cgroups.ts';
import { readNote } from '../src/embedded/spawner/sandbox/notes.ts';
import { joinOrder, startOrder } from '../src/embedded/spawner/orders.ts';
import {
  bwrapOptions,
  environmentOf,
  prepareRootfs,
  writableMounts,
} from '../src/embedded/spawner/sandbox/rootfs.ts';
import { answerOrders } from './child.ts';
import { childrenOf, pause } from './process-facts.ts';
import { writePieces } from './transfers.ts';

/**
 * Compared with launches and commands: starts the launcher with the spawner's options, and waits.
 * It writes no records or notes, manages no uids and reports to nobody.
 */

export interface RawStarts {
  readonly kind: 'starts';
  readonly launcherPath: string;
  readonly rootfs: string;
  readonly folder: string;
  readonly definition: InstanceDefinition;
  readonly count: number;
  readonly parallel: number;
  /** Only as root. */
  readonly firstUid?: number;
  /** As the spawner gives them. */
  readonly cgroups: boolean;
}

export interface RawJoins {
  readonly kind: 'joins';
  readonly launcherPath: string;
  /** Written by the spawner. */
  readonly note: string;
  readonly folder: string;
  readonly argv: readonly string[];
  readonly count: number;
}

/** One command, with 64 MiB as its input or none. */
export interface RawFlows extends Pick<RawJoins, 'launcherPath' | 'note' | 'folder' | 'argv'> {
  readonly kind: 'flows';
  readonly hasInput: boolean;
}

export type RawOrder = RawStarts | RawJoins | RawFlows;

const PIDS_MAX = 256;
const KILL_DEADLINE_MS = 5_000;

const starts = async (order: RawStarts): Promise<readonly number[]> => {
  const { definition } = order;
  const [container] = definition.containers;
  if (!container) throw new Error('there is no container');
  const rootfs = prepareRootfs(order.rootfs, order.launcherPath);
  const cgroups = findCgroups(`sandpool-bench-${process.pid}`);
  const orders = join(order.folder, 'raw-orders');
  mkdirSync(orders, { recursive: true });
  const outer: { pid: number; ended: Promise<unknown> }[] = [];
  const folders: string[] = [];

  const one = async (at: number): Promise<void> => {
    const own = order.cgroups
      ? cgroups.create(`raw-${at}`, 'bench', {
          memoryBytes: container.memoryBytes,
          cpuCores: container.cpuCores,
          processes: PIDS_MAX,
        })
      : [];
    folders.push(...own);
    const file = join(orders, String(at));
    writeFileSync(
      file,
      startOrder({
        bwrap: '/usr/bin/bwrap',
        uid: order.firstUid === undefined ? undefined : order.firstUid + at,
        cgroups: own,
        rlimits: [['nofile', '4096', '4096']],
        options: bwrapOptions({ definition, container, rootfs }),
        tmpfs: writableMounts(
          { container, rootfs },
          order.firstUid === undefined ? undefined : order.firstUid + at,
        ),
        argv: container.argv,
      }),
    );
    const [orderFd, info] = [openSync(file, 'r'), openSync('/dev/null', 'w')];
    const child = spawn(rootfs.launcher, ['start'], {
      stdio: ['ignore', 'ignore', 'ignore', orderFd, info, 'pipe'],
      env: {},
      cwd: '/',
    });
    closeSync(orderFd);
    closeSync(info);
    const ended = once(child, 'exit');
    const pipes: readonly (Readable | Writable | null | undefined)[] = child.stdio;
    const executed = pipes[5];
    if (child.pid === undefined || !executed || !('read' in executed))
      throw new Error('the launcher could not be started');
    outer.push({ pid: child.pid, ended });
    let complaint = '';
    executed.on('data', (bytes: Buffer) => {
      complaint += String(bytes);
    });
    await once(executed, 'end');
    if (complaint !== '') throw new Error(`the command was not executed: ${complaint}`);
  };

  const began = performance.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: order.parallel }, async () => {
      for (let at = next++; at < order.count; at = next++) await one(at);
    }),
  );
  const tookMs = performance.now() - began;

  if (outer.some(({ pid }) => childrenOf(pid).length === 0))
    throw new Error('not every sandbox runs');
  for (const { pid } of outer) for (const init of childrenOf(pid)) process.kill(init, 'SIGKILL');
  await Promise.all(outer.map(({ ended }) => ended));
  await removed(folders);
  cgroups.remove();
  rmSync(orders, { recursive: true, force: true });
  return [tookMs];
};

const removed = async (folders: readonly string[]): Promise<void> => {
  const deadline = performance.now() + KILL_DEADLINE_MS;
  while (!removeCgroups(folders)) {
    if (performance.now() > deadline)
      throw new Error('the cgroups of ended sandboxes do not empty');
    await pause(10);
  }
};

/** Returns the file. */
const writeJoin = (order: Omit<RawFlows, 'kind' | 'hasInput'>): string => {
  const { note, running } = readNote(order.note, basename(order.note));
  if (!note || !running) throw new Error(`there is no sandbox behind ${order.note}`);
  const file = join(order.folder, 'raw-join');
  writeFileSync(
    file,
    joinOrder({
      init: running.init,
      cgroups: note.cgroups,
      cwd: note.workingDir,
      env: environmentOf(note.env),
      argv: order.argv,
    }),
  );
  return file;
};

const joins = async (order: RawJoins): Promise<readonly number[]> => {
  const file = writeJoin(order);
  const tookMs: number[] = [];
  for (let at = 0; at < order.count; at += 1) {
    const began = performance.now();
    const orderFd = openSync(file, 'r');
    const child = spawn(order.launcherPath, ['join'], {
      stdio: ['ignore', 'pipe', 'pipe', orderFd],
      env: {},
      cwd: '/',
    });
    closeSync(orderFd);
    child.stdout?.resume();
    child.stderr?.resume();
    const [code]: unknown[] = await once(child, 'close');
    tookMs.push(performance.now() - began);
    if (code !== 0) throw new Error(`the command ended with ${String(code)}`);
  }
  return tookMs;
};

const flows = async (order: RawFlows): Promise<readonly number[]> => {
  const file = writeJoin(order);
  const began = performance.now();
  const orderFd = openSync(file, 'r');
  const child = spawn(order.launcherPath, ['join'], {
    stdio: ['pipe', 'pipe', 'ignore', orderFd],
    env: {},
    cwd: '/',
  });
  closeSync(orderFd);
  const { stdin, stdout } = child;
  if (!stdin || !stdout) throw new Error('the launcher could not be started');
  const closed = once(child, 'close');
  stdout.resume();
  if (order.hasInput) await writePieces(stdin);
  stdin.end();
  const [code]: unknown[] = await closed;
  if (code !== 0) throw new Error(`the command ended with ${String(code)}`);
  return [performance.now() - began];
};

/** `starts`, `flows`: one value for all. `joins`: one each. */
answerOrders((order: RawOrder): Promise<readonly number[]> => {
  if (order.kind === 'starts') return starts(order);
  return order.kind === 'joins' ? joins(order) : flows(order);
});
