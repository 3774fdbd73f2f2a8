import { expect } from 'chai';
import type { Browser } from 'playwright-core';
import { aChromium, noChromium } from '../support/harness/a-chromium.ts';
import { skipBecause } from '../support/harness/skip-because.ts';
import { documentedOperations } from '../support/harness/documented-answers.ts';
import { aServer, type TestServer } from './a-server.ts';
import { NEVER_COMES_MS } from '../support/harness/eventually.ts';

describe('GET /docs', () => {
  let server: TestServer;
  before(async () => {
    server = await aServer();
  });
  after(() => server.stop());

  it('is public, with a policy that allows its own files only', async () => {
    const { status, headers, text } = await server.anyone.get('/docs');
    const policy = Object.fromEntries(
      (headers['content-security-policy'] ?? '')
        .split('; ')
        .map((rule) => [rule.split(' ')[0], rule.split(' ').slice(1)]),
    );

    expect(status).to.equal(200);
    expect(headers['content-type']).to.equal('text/html; charset=utf-8');
    expect(policy).to.deep.include({
      'default-src': ["'none'"],
      'script-src': ["'self'"],
      'style-src': ["'self'"],
      'connect-src': ["'self'"],
      'frame-ancestors': ["'none'"],
    });
    expect(text).to.not.match(/https?:|<style|style=|<script(?![^>]*src=)|\son\w+=/);
  });

  it('provides its files, which browsers can cache', async () => {
    const { text } = await server.anyone.get('/docs');
    const files = [...text.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map(([, file]) => file);
    expect(files).to.have.lengthOf(3);
    for (const file of files) {
      const { status, headers } = await server.anyone.get(`/${file}`);
      expect(status, file).to.equal(200);
      expect(headers['x-content-type-options']).to.equal('nosniff');
      expect(
        (
          await server.anyone.get(`/${file}`, {
            headers: { 'If-None-Match': headers['etag'] ?? '' },
          })
        ).status,
      ).to.equal(304);
    }
  });

  for (const base of ['', '/v1']) {
    it(`shows every operation in a browser under ${base}/docs, without foreign requests or violations`, async function () {
      if (noChromium) return skipBecause(this, noChromium);
      const browser = await aChromium();
      try {
        const { shown, elsewhere, complaints } = await look(
          browser,
          `http://127.0.0.1:${server.port}`,
          `${base}/docs`,
        );

        expect(shown).to.have.members(
          documentedOperations.map(({ operation }) => operation['operationId']),
        );
        expect(elsewhere).to.deep.equal([]);
        expect(complaints).to.deep.equal([]);
      } finally {
        await browser.close();
      }
    });
  }

  it('lets a reader try an operation with a key', async function () {
    if (noChromium) return skipBecause(this, noChromium);
    const browser = await aChromium();
    try {
      const page = await browser.newPage();
      page.setDefaultTimeout(NEVER_COMES_MS);
      await page.goto(`http://127.0.0.1:${server.port}/docs`);
      await page.click('.authorize');
      await page.fill('.modal-ux section input', server.tenant.key ?? '');
      await page.click('.modal-ux .authorize');
      await page.click('.modal-ux .close-modal');
      await page.click('#operations-Pools-listPools .opblock-summary-control');
      await page.click('#operations-Pools-listPools .try-out__btn');
      await page.click('#operations-Pools-listPools .execute');
      await page.waitForSelector('#operations-Pools-listPools .live-responses-table');

      expect(
        await page.textContent(
          '#operations-Pools-listPools .live-responses-table tbody .response-col_status',
        ),
      ).to.include('200');
    } finally {
      await browser.close();
    }
  });
});

const look = async (browser: Browser, origin: string, path: string) => {
  const page = await browser.newPage();
  page.setDefaultTimeout(NEVER_COMES_MS);
  const elsewhere: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== origin)
      elsewhere.push(request.url());
  });
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(`${origin}${path}`);
  await page.waitForSelector('.opblock');
  const shown = await page.$$eval('.opblock-summary-operation-id', (elements) =>
    elements.map(({ textContent }) => (textContent ?? '').replaceAll('\u200b', '')),
  );
  await page.click('.opblock-summary'); // its details too
  await page.waitForSelector('.opblock-body');
  if (process.env['DOCS_SCREENSHOT'])
    await page.screenshot({ path: process.env['DOCS_SCREENSHOT'], fullPage: false });
  return { shown, elsewhere, complaints };
};
