import { expect } from 'chai';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { referencePages } from '../../script/reference-pages.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

const REFERENCE = await referencePages();

/** Every page, from the root: those in the repository, and those of docs/reference as built now. */
const pages = [
  ...REFERENCE.keys(),
  ...readdirSync(ROOT).filter((name) => name.endsWith('.md')),
  ...['docs', 'native', 'bench'].flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(folder, name))
      .filter((path) => !path.startsWith('docs/reference/') || path === 'docs/reference/README.md'),
  ),
];

const textOf = (page: string): string =>
  REFERENCE.get(page) ?? readFileSync(join(ROOT, page), 'utf8');

/** As GitHub names a heading; the second of a name is not looked for. */
const anchorOf = (heading: string): string =>
  heading
    .replaceAll(/`|\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
    .trim()
    .replaceAll(' ', '-');

const anchorsOf = (page: string): readonly string[] =>
  [...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => anchorOf(heading));

const linksOf = (page: string): readonly string[] =>
  [
    ...textOf(page)
      .replaceAll(/^```[^]*?^```/gm, '')
      .matchAll(/\]\(([^)\s]+)\)/g),
  ]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target));

describe('the documentation', () => {
  it('includes the main pages', () => {
    expect(pages).to.include.members([
      'README.md',
      'ARCHITECTURE.md',
      'CONTRIBUTING.md',
      'docs/reference/api/README.md',
      'docs/decisions/README.md',
      'native/README.md',
    ]);
  });

  it('links to files and headings that exist', () => {
    const broken = pages.flatMap((page) =>
      linksOf(page).flatMap((link) => {
        const [path = '', anchor] = link.split('#');
        const target = path === '' ? page : normalize(join(dirname(page), path));
        if (!REFERENCE.has(target) && !existsSync(join(ROOT, target))) return [`${page}: ${link}`];
        return anchor !== undefined && !anchorsOf(target).includes(anchor)
          ? [`${page}: ${link}`]
          : [];
      }),
    );

    expect(broken).to.deep.equal([]);
  });

  it('names existing files of the code', () => {
    const absent = pages.flatMap((page) =>
      [...textOf(page).matchAll(/`((?:src|test|script|config|native|bin)\/[A-Za-z0-9_./-]+)/g)]
        .map(([, path = '']) => path.replace(/\.$/, ''))
        .filter((path) => !existsSync(join(ROOT, path)))
        .map((path) => `${page}: ${path}`),
    );

    expect(absent).to.deep.equal([]);
  });

  it('lists every decision', () => {
    const records = readdirSync(join(ROOT, 'docs/decisions')).filter(
      (name) => name !== 'README.md',
    );

    expect(linksOf('docs/decisions/README.md')).to.have.members(records);
  });
});
