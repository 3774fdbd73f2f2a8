import type { Figure } from '../figure.ts';
import { inPairs } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { byRest, withServedSandbox } from './served-sandbox.ts';

const COMMANDS = 40;
const COMMAND = ['/bin/bash', '-l', '-c', 'true'];

export const run: Figure = {
  name: 'e2b:run',
  about: "`commands.run('true')` of the SDK, against the same command by the REST API's exec",
  run: async (bench) =>
    await withServedSandbox(bench, async ({ sdk, rest }) => {
      const median = async (one: () => Promise<void>): Promise<number> => {
        const found: number[] = [];
        for (let at = 0; at < COMMANDS; at += 1) {
          const began = performance.now();
          await one();
          found.push(performance.now() - began);
        }
        return quantile(found, 0.5);
      };
      const ours = (): Promise<number> =>
        median(async () => {
          const { exitCode } = await sdk.commands.run('true');
          if (exitCode !== 0) throw new Error(`it ended with ${exitCode}`);
        });
      const theirs = (): Promise<number> =>
        median(async () => {
          const answer = await byRest(rest, 'exec', {
            method: 'POST',
            headers: { 'Content-Type': 'application/json' },
            body: JSON.stringify({ command: COMMAND }),
          });
          const { exitCode } = (await answer.json()) as { readonly exitCode: number };
          if (exitCode !== 0) throw new Error(`it ended with ${exitCode}`);
        });
      await ours();
      await theirs();
      return [
        {
          name: "commands.run('true') / exec of the same, p50",
          unit: 'ms',
          better: 'less',
          reach: 1.3,
          beyond: 1.1,
          ...(await inPairs({ ...bench, rounds: bench.rounds * 3 }, { ours, theirs })),
        },
      ];
    }),
};
