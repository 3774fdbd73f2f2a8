/**
 * What the tests write goes to a folder of their own. tsx has begun before: it keeps compiled files
 * in the machine's temporary folder, where all suites and later runs find them.
 */
const own = process.env['TEST_TMPDIR'];
if (own !== undefined) process.env['TMPDIR'] = own;
