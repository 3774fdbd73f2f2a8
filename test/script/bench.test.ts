import { expect } from 'chai';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('script/bench', () => {
  it('names every figure in its help', () => {
    const main = readFileSync(`${ROOT}/bench/main.ts`, 'utf8');
    const [, list = ''] = /FIGURES: readonly Figure\[\] = \[([^\]]*)\]/.exec(main) ?? [];
    const figures = [...list.matchAll(/(\w+),/g)].map(([, name = '']) => name);
    const help = execFileSync(`${ROOT}/script/bench`, ['--help'], { encoding: 'utf8' });
    const named = /or all: ([^.]*)\./.exec(help)?.[1]?.split(/,\s+/);

    expect(figures).to.include('burst');
    expect(named).to.deep.equal(figures);
  });
});
