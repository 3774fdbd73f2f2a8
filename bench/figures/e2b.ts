import { Sandbox as SdkSandbox } from 'e2b-2-51-0';
import { compatibleId } from '../../src/http/e2b/sandbox-id.ts';
import { claimRound } from '../claim-round.ts';
import { COMPATIBLE_FLAGS } from '../daemon.ts';
import { inPairs, type Bench, type Figure } from '../figure.ts';
import type { Ask } from '../kept-connection.ts';
import type { Cost } from '../load.ts';
import { rowOf, type Measure } from '../measure.ts';
import { Sandbox } from '../sandbox.ts';
import { median } from '../statistics.ts';

const CLAIMS = 100;
const POOL = 'bench';
const WARM_UP = 4;
const COMMANDS = 40;
/** The SDK runs `true` like this. */
const COMMAND = ['/bin/bash', '-l', '-c', 'true'];
const AN_HOUR_MS = 3_600_000;

export const e2b: Figure = {
  name: 'e2b',
  about: "a claim and a command as E2B's SDK sends them, against the REST API of the same daemon",
  run: async (bench) => {
    await using sandbox = await Sandbox.start(bench, COMPATIBLE_FLAGS);
    return [await claims(bench, sandbox), await commands(bench, sandbox)];
  },
};

const claims = async (bench: Bench, { daemon }: Sandbox): Promise<Measure> => {
  await daemon.service.createFullPool(POOL, CLAIMS);
  const run = (port: number, asks: readonly Ask[]) => bench.load.closed(port, asks, 1);
  const terms = { pool: POOL, count: CLAIMS, run };
  const pairs = await inPairs<Cost>(
    bench,
    {
      ours: () => claimRound(daemon, { ...terms, compatible: true }),
      theirs: () => claimRound(daemon, terms),
    },
    WARM_UP,
  );
  const name = 'POST /v2/sandboxes, p50 / POST /sandboxes';
  return rowOf({ name, reach: 1.25, beyond: 1.05 }, pairs, ({ p50 }) => p50);
};

const commands = async (bench: Bench, { daemon, place }: Sandbox): Promise<Measure> => {
  const url = daemon.compatibleUrl.origin;
  const sdk = await SdkSandbox.connect(compatibleId(place.id), {
    apiKey: daemon.key,
    apiUrl: url,
    sandboxUrl: url,
    timeoutMs: AN_HOUR_MS,
  });
  /** Node's client keeps its connections, as the SDK's does. */
  const byRest = async (): Promise<{ readonly exitCode: number }> => {
    const { port } = daemon.service;
    const answer = await fetch(`http://127.0.0.1:${port}/sandboxes/${place.id}/exec`, {
      method: 'POST',
      headers: { 'SERVICE-API-KEY': daemon.key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ command: COMMAND }),
    });
    return (await answer.json()) as { readonly exitCode: number };
  };
  const pairs = await inPairs(
    bench,
    {
      ours: () => medianOf(() => sdk.commands.run('true')),
      theirs: () => medianOf(byRest),
    },
    1,
  );
  const name = "commands.run('true'), p50 / exec of the same";
  return rowOf({ name, reach: 1.3, beyond: 1.1 }, pairs, (ms) => ms);
};

const medianOf = async (run: () => Promise<{ readonly exitCode: number }>): Promise<number> => {
  const found: number[] = [];
  for (let at = 0; at < COMMANDS; at += 1) {
    const began = performance.now();
    const { exitCode } = await run();
    found.push(performance.now() - began);
    if (exitCode !== 0) throw new Error(`the command ended with ${exitCode}`);
  }
  return median(found);
};
