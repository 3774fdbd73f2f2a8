import { expect } from 'chai';
import { blockAt, changesOf, marked } from '../../script/mutation/lua-mutants.ts';
import { FOLDERS, folderOf, keyOf, mutantsAt, sampleOf } from '../../script/mutation/mutant.ts';

const SCRIPT = `-- counts > 1
local function count(key, most)
  if redis.call('GET', key) == '1' and most > 0 then
    redis.call('DEL', key)
    return most - 1
  end
  return 0
end

return {count(KEYS[1], tonumber(ARGV[2]))}
`;

/** The script's lines that each change leaves, without blanks, by the change's mutator. */
const made = (mutator: string): readonly string[] =>
  changesOf(SCRIPT)
    .filter((change) => change.mutator === mutator)
    .map(({ start, end, replacement }) => {
      const before = SCRIPT.slice(0, start);
      const line = before.slice(before.lastIndexOf('\n') + 1) + replacement + SCRIPT.slice(end);
      return line.split('\n')[0]?.trim() ?? '';
    });

describe('mutants of Lua', () => {
  it('swap operators, but not in comments and strings', () => {
    expect(made('EqualityOperator')).to.deep.equal([
      "if redis.call('GET', key) ~= '1' and most > 0 then",
      "if redis.call('GET', key) == '1' and most >= 0 then",
      "if redis.call('GET', key) == '1' and most <= 0 then",
    ]);
    expect(made('LogicalOperator')).to.deep.equal([
      "if redis.call('GET', key) == '1' or most > 0 then",
    ]);
    expect(made('ArithmeticOperator')).to.deep.equal(['return most + 1']);
  });

  it('replace conditions by constants', () => {
    expect(made('ConditionalExpression')).to.deep.equal(['if false then', 'if true then']);
  });

  it('remove calls and returns that are statements', () => {
    expect(made('CallStatement')).to.deep.equal(['']);
    expect(made('ReturnStatement')).to.deep.equal(['', '', '']);
  });

  it('are found in their enclosing block', () => {
    const begins = (text: string): string =>
      SCRIPT.slice(blockAt(SCRIPT, SCRIPT.indexOf(text))).trimStart();

    expect(begins("redis.call('DEL'").startsWith("redis.call('DEL'")).to.equal(true);
    expect(begins('return 0').startsWith('if redis.call')).to.equal(true);
    expect(begins('return {count').startsWith('local function')).to.equal(true);
    expect(marked(SCRIPT, 'a.lua').match(/cover:a\.lua:\d+/g)).to.have.length(3);
  });
});

describe('a sample of mutants', () => {
  const mutants = FOLDERS.flatMap((folder, n) =>
    mutantsAt(
      'a + a + a',
      Array.from({ length: 60 * (n + 1) }, (_, id) => ({
        ...{ id: String(id), file: `${folder}/x`, mutator: 'M', replacement: '-' },
        ...{ start: 2, end: 3 },
      })),
    ),
  );

  it('takes an equal part of each folder', () => {
    const sample = sampleOf(mutants, 60, 1);

    expect(
      FOLDERS.map((folder) => sample.filter((mutant) => folderOf(mutant) === folder).length),
    ).to.deep.equal([10, 20, 30]);
    expect(new Set(sample.map(keyOf)).size).to.equal(60);
  });

  it('is the same only for the same seed', () => {
    expect(sampleOf(mutants, 60, 1)).to.deep.equal(sampleOf(mutants, 60, 1));
    expect(sampleOf(mutants, 60, 1)).to.not.deep.equal(sampleOf(mutants, 60, 2));
  });
});
