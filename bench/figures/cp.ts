import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { writeFileSync } from 'node:fs';
import { withSandbox, type ClaimedSandbox } from '../claimed-sandbox.ts';
import { inPairs, type Figure } from '../figure.ts';

const MB = 30;
const CONTENT = Buffer.alloc(MB * 1_000_000, 'a line of text that is of no use to anybody else\n');
/** As `cp` went before: so much in each command. */
const PIECE_BYTES = 512 * 1_024;
const COMMAND = resolve('dist/cli/main.js');

export const cp: Figure = {
  name: 'cp',
  about: `\`sandpool cp\` of ${MB} MB, against the same by commands with base64, as it went before`,
  run: async (bench) =>
    await withSandbox(bench, async (sandbox) => {
      const local = join(bench.folder, 'cp-content');
      writeFileSync(local, CONTENT);
      const remote = `${sandbox.id}:/tmp/content`;
      const sides = {
        'cp of 30 MB into a sandbox / by base64': {
          ours: () => copied(sandbox, [local, remote]),
          theirs: () => uploaded(sandbox),
        },
        'cp of 30 MB out of a sandbox / by base64': {
          ours: () => copied(sandbox, [remote, `${local}-back`]),
          theirs: () => downloaded(sandbox),
        },
      };
      const rows = [];
      for (const [name, { ours, theirs }] of Object.entries(sides)) {
        await ours();
        rows.push({
          name,
          unit: 'ms',
          better: 'less' as const,
          reach: 0.2,
          beyond: 0.1,
          ...(await inPairs(bench, { ours, theirs })),
        });
      }
      return rows;
    }),
};

/** With the start of the command. */
const copied = async (
  { daemon, key }: ClaimedSandbox,
  args: readonly string[],
): Promise<number> => {
  const began = performance.now();
  const child = spawn(process.execPath, [COMMAND, 'cp', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env['PATH'] ?? '',
      SANDPOOL_SERVER: `http://127.0.0.1:${daemon.service.port}`,
      SANDPOOL_API_KEY: key,
    },
  });
  const [code]: unknown[] = await once(child, 'close');
  if (code !== 0) throw new Error(`sandpool cp ended with ${String(code)}`);
  return performance.now() - began;
};

/** Without the start of a command, and without the sums that it compared. */
const uploaded = async (sandbox: ClaimedSandbox): Promise<number> => {
  await sandbox.run('rm -f /tmp/before');
  const began = performance.now();
  for (let from = 0; from < CONTENT.length; from += PIECE_BYTES) {
    const stdin = CONTENT.subarray(from, from + PIECE_BYTES).toString('base64');
    await inSandbox(sandbox, { command: 'base64 -d >> /tmp/before', stdin });
  }
  return performance.now() - began;
};

const downloaded = async (sandbox: ClaimedSandbox): Promise<number> => {
  const began = performance.now();
  let bytes = 0;
  for (let place = 0; bytes < CONTENT.length; place += 1) {
    const command = `dd if=/tmp/before bs=${PIECE_BYTES} skip=${place} count=1 2>/dev/null | base64 -w 0`;
    const answer = await inSandbox(sandbox, { command });
    const { stdout } = JSON.parse(answer) as { readonly stdout: string };
    if (stdout === '') throw new Error('nothing came');
    bytes += Buffer.from(stdout, 'base64').length;
  }
  return performance.now() - began;
};

const inSandbox = async (
  { daemon, id, key }: ClaimedSandbox,
  body: { readonly command: string; readonly stdin?: string },
): Promise<string> => {
  const answer = await fetch(`http://127.0.0.1:${daemon.service.port}/sandboxes/${id}/exec`, {
    method: 'POST',
    headers: { 'SERVICE-API-KEY': key, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (!text.includes('"exitCode":0')) throw new Error(`a piece failed: ${text.slice(0, 300)}`);
  return text;
};
