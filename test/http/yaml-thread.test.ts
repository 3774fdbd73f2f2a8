import { expect } from 'chai';
import { readdirSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { YamlThread } from '../../src/http/resources/pools/yaml-thread.ts';

/** The niceness of each thread of this process, as Linux counts it. */
const nicenesses = (): readonly number[] =>
  readdirSync('/proc/self/task').map((thread) => {
    const stat = readFileSync(`/proc/self/task/${thread}/stat`, 'utf8');
    // Field 19, where field 3 is the first after the name in brackets.
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16]);
  });

describe('the thread for long YAML', () => {
  it('has a lower priority than the event loop', async () => {
    const document = { values: Array.from({ length: 2_000 }, (_, n) => `value ${n}`) };
    expect(nicenesses()).not.to.include(10);
    expect(parse(await new YamlThread().textOf(document))).to.deep.equal(document);
    expect(nicenesses()).to.include(10);
  });
});
